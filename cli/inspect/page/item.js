// One item: what it says with the quotes it cites, what it rests on down to the raw trace, and what would fall with it.
"use strict";
{
  const { html, useState } = H;
  const WIDE = 210;
  const HIGH = 54;
  const GAP = [56, 16];

  // Evidence on the left, dependents on the right: a column for each step, a line from each item to what it rests on.
  const layout = (story) => {
    const columns = new Map([[0, [story.item]]]);
    const place = (rows, side) => {
      const seen = new Set([story.item.key]);
      for (const row of rows) {
        if (seen.has(row.key)) continue;
        seen.add(row.key);
        const column = side * row.depth;
        (columns.get(column) || columns.set(column, []).get(column)).push(row);
      }
    };
    place(story.sources, -1);
    place(story.dependents, 1);
    const least = Math.min(...columns.keys());
    const tallest = Math.max(...[...columns.values()].map((rows) => Math.min(rows.length, 12)));
    const height = tallest * (HIGH + GAP[1]);
    const nodes = new Map();
    for (const [column, rows] of columns) {
      const shown = rows.slice(0, 12);
      const top = (height - shown.length * (HIGH + GAP[1])) / 2;
      shown.forEach((row, nth) => nodes.set(row.key, {
        row, x: (column - least) * (WIDE + GAP[0]) + 2, y: top + nth * (HIGH + GAP[1]) + 2,
      }));
    }
    const edges = [];
    const link = (from, to) => { if (nodes.has(from) && nodes.has(to)) edges.push([nodes.get(from), nodes.get(to)]); };
    for (const row of story.sources) link(row.root, row.key);
    for (const row of story.dependents) link(row.key, row.root);
    return { nodes: [...nodes.values()], edges, width: columns.size * (WIDE + GAP[0]), height: height + 4 };
  };

  const cut = (text, most) => (text && text.length > most ? `${text.slice(0, most - 1)}…` : text || "");

  const Tree = ({ story, at }) => {
    const { nodes, edges, width, height } = layout(story);
    const tone = (row) => (row.key === story.item.key ? "here" : row.status === "failed" || row.support === "unsupported" ? "bad" : row.active === false ? "gone" : "");
    return html`<div class="tree" tabindex="0" role="region" aria-label="provenance"><svg width=${width} height=${height} role="group" aria-label="provenance">
      ${edges.map(([from, to]) => {
        const [x1, y1, x2, y2] = [from.x, from.y + HIGH / 2, to.x + WIDE, to.y + HIGH / 2];
        return html`<path class="edge" d=${`M${x1} ${y1} C${x1 - GAP[0] / 2} ${y1} ${x2 + GAP[0] / 2} ${y2} ${x2} ${y2}`} />`;
      })}
      ${nodes.map(({ row, x, y }) => html`<a href=${H.linkTo(row.key, at)} class=${tone(row)}>
        <rect x=${x} y=${y} width=${WIDE - 4} height=${HIGH} rx=${row.layer === "trace" || ["call", "turn", "observation"].includes(row.kind) ? 4 : 14} />
        <text x=${x + 10} y=${y + 21}>${cut(row.text, 28)}</text>
        <text class="small" x=${x + 10} y=${y + 41}>${cut(`${row.key} · ${row.kind || ""}${row.status === "failed" ? " · failed" : ""}${row.support && row.support !== "supported" ? ` · ${row.support}` : ""}${row.active === false ? " · inactive" : ""}`, 34)}</text>
      </a>`)}
    </svg></div>`;
  };

  const Facts = ({ item }) => {
    const names = ["key", "kind", "episode", "step", "time", "source", "speaker", "tool", "version", "status", "support", "trust", "utility", "origin", "commit", "tokens", "has_vector", "page", "conflict", "labels"];
    return html`<table><tbody>${names.filter((name) => item[name] !== undefined && item[name] !== "").map((name) => html`
      <tr><th scope="row">${name.replace("_", " ")}</th><td>${name === "time" ? html`<${H.When} time=${item.time} />`
        : name === "conflict" ? html`<${H.Key} name=${item.conflict} />` : ["status", "support"].includes(name) ? html`<${H.Tag}>${item[name]}<//>` : [item[name]].flat().join(", ")}</td></tr>`)}</tbody></table>`;
  };

  const Evidence = ({ story, at }) => {
    const byTarget = new Map();
    for (const cited of story.citations) (byTarget.get(cited.target) || byTarget.set(cited.target, []).get(cited.target)).push(cited);
    if (!byTarget.size) {
      return html`<p>${story.item.layer === "trace" ? "This is what happened: it rests on nothing else." : story.item.ungrounded ? "It was stored without a source, and says so." : "It cites no bytes."}</p>`;
    }
    return [...byTarget].map(([target, cited]) => {
      const source = story.targets?.[target];
      const fields = [...new Set(cited.map((one) => one.field))];
      return html`<div class="source"><div class="row"><${H.Key} name=${target} at=${at} />
        ${source && html`<span class="when">${source.kind}${source.tool ? ` ${source.tool}` : ""}</span><${H.When} time=${source.time} /><${H.Standing} item=${source} />`}
        ${[...new Set(cited.map((one) => one.verdict))].map((verdict) => html`<${H.Tag}>${verdict}<//>`)}</div>
        ${source ? fields.map((field) => html`<pre>${H.quoted(H.fieldOf(source, field) ?? source.text, cited.filter((one) => one.field === field))}</pre>`)
          : cited.map((one) => html`<pre>${one.text}</pre>`)}</div>`;
    });
  };

  // A mark or a retraction, where `--allow-write` lets the page change the memory.
  const Change = ({ item, changed }) => {
    const [told, setTold] = useState(null);
    if (!H.canWrite) return null;
    const write = async (event) => {
      event.preventDefault();
      const { as, because } = event.target.elements;
      try {
        const done = await H.source.change({ key: item.key, as: as.value, because: because.value });
        setTold({ notes: done.notes.length ? done.notes : ["Done: nothing else changed."] });
        changed();
      } catch (error) { setTold({ error }); }
    };
    return html`<section class="panel"><h2>Say that it is wrong</h2><form class="row" onSubmit=${write}>
      <label class="skip" for="as">What to do</label><div><select id="as" name="as"><option value="failed">mark as failed</option><option value="success">mark as success</option><option value="unknown">mark as unknown</option><option value="retracted">retract</option></select></div>
      <div class="grow"><label class="skip" for="because">The reason</label><input id="because" name="because" required placeholder="because…" /></div><button class="main">Write</button></form>
      <div role="status">${told?.notes?.map((note) => html`<p class="note">${note}</p>`)}${told?.error && html`<p class="note error">${told.error.message}</p>`}</div></section>`;
  };

  H.Item = ({ name, at }) => {
    const [times, setTimes] = useState(0);
    const state = H.useLoad(() => H.source.item(name, at), [name, at, times]);
    return html`<${H.Loaded} state=${state}>${(story) => {
      const { item } = story;
      const changes = story.history.filter((row) => row.since > item.commit);
      const fallen = new Set(story.dependents.map((row) => row.key)).size;
      return html`
        <${H.Head} title=${item.key} />
        <div class="row lead"><span>${item.layer}, ${item.kind}</span><${H.Standing} item=${item} /><${H.When} time=${item.time} /></div>
        <div class="panel"><p class="said">${item.text}</p>
          ${item.redacted && html`<p class="note">Its bytes were erased.</p>`}
          ${item.conflict && html`<p class="note">Contradicted by <${H.Key} name=${item.conflict} at=${at} />.</p>`}</div>
        <div class="panel"><h2>Where it comes from, and what rests on it</h2><${Tree} story=${story} at=${at} />
          <p class="lead">${fallen ? `${fallen} ${fallen === 1 ? "item" : "items"} would fall with it.` : "Nothing rests on it."}</p></div>
        ${H.source.isLive && !at && html`<${Change} item=${item} changed=${() => setTimes(times + 1)} />`}
        <div class="pair">
          <section class="panel"><h2>The bytes it rests on</h2><${Evidence} story=${story} at=${at} /></section>
          <section class="panel"><h2>Attributes</h2><${Facts} item=${item} />
            ${item.fields?.filter((field) => field.name !== "text").map((field) => html`<details><summary>${field.name}</summary><pre>${field.text ?? `${field.bytes} bytes`}</pre></details>`)}</section>
        </div>
        ${story.conflicts.length > 0 && html`<section class="panel"><h2>Said otherwise</h2><${H.Table} rows=${story.conflicts} columns=${["name", "value", "item", "won", "status", "time"]} label="conflicts" /></section>`}
        ${H.source.isLive && html`<section class="panel"><h2>What changed it</h2>
          ${changes.length ? html`<${H.Table} rows=${changes} columns=${["since", "attribute", "value", "because", "time"]} label="changes" />` : html`<p>Nothing has changed since commit ${item.commit} wrote it.</p>`}
          <details><summary>Every value it had</summary><${H.Table} rows=${story.history} columns=${["attribute", "value", "since", "until", "time", "because"]} label="history" /></details></section>`}`;
    }}<//>`;
  };
}
