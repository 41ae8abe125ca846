// Overview, time, health and live: the memory as a whole.
"use strict";
{
  const { html, useEffect, useState } = H;
  const sum = (rows, test) => rows.filter(test).reduce((all, row) => all + row.count, 0);

  const Growth = ({ rows }) => {
    const dated = rows.filter((row) => row.time);
    if (dated.length < 2) return null;
    const most = Math.max(...dated.map((row) => row.count));
    const wide = 100 / dated.length;
    return html`<svg class="spark" viewBox="0 0 100 40" preserveAspectRatio="none" role="img" aria-label=${`items a day, at most ${most}`}>
      ${dated.map((row, nth) => html`<rect x=${nth * wide} width=${Math.max(0.3, wide - 0.4)} y=${40 - (38 * row.count) / most} height=${(38 * row.count) / most}><title>${row.time.slice(0, 10)}: ${row.count}</title></rect>`)}
    </svg><p class="lead">Items a day, ${dated[0].time.slice(0, 10)} to ${dated[dated.length - 1].time.slice(0, 10)}, at most ${H.number(most)}.</p>`;
  };

  // Which quotes of a file hold.
  const Holding = () => {
    const [found, setFound] = useState(null);
    useEffect(() => { H.source.checkQuotes(setFound); }, []);
    if (!found) return html`<p class="lead" aria-busy="true">Hashing the quotes…</p>`;
    return html`<p role="status"><${H.Tag}>${found.wrong.length ? "mismatch" : "ok"}<//> ${H.number(found.holding)} of ${H.number(found.checked)} quotes hold${found.missing ? `; the sources of ${H.number(found.missing)} more are not in this file` : ""}.</p>
      ${found.wrong.length > 0 && html`<${H.Table} rows=${found.wrong} label="quotes that do not hold" />`}`;
  };

  H.Overview = ({ at }) => {
    const state = H.useLoad(() => H.source.overview(at), [at]);
    return html`<${H.Head} title="Overview" /><${H.Loaded} state=${state}>${(view) => {
      const { counts } = view;
      const all = sum(counts, () => true);
      const kinds = [...new Set(counts.map((row) => row.kind))].map((kind) => ({
        kind, items: sum(counts, (row) => row.kind === kind), failed: sum(counts, (row) => row.kind === kind && row.status === "failed"),
        unsupported: sum(counts, (row) => row.kind === kind && row.support === "unsupported"), inactive: sum(counts, (row) => row.kind === kind && row.active === false),
      })).sort((a, b) => b.items - a.items);
      const figures = [
        [all, "items"], [sum(counts, (row) => row.layer === "trace"), "traces: what happened"], [sum(counts, (row) => row.layer !== "trace"), "distilled from them"],
        [sum(counts, (row) => row.status === "failed"), "failed"], [sum(counts, (row) => row.support === "unsupported" || row.support === "weakened"), "with weakened or lost support"],
      ];
      return html`<p class="lead">Commit ${H.number(view.commit)}${view.head ? html`, head <code>${view.head.hash.slice(0, 16)}</code>` : ""}.</p>
        ${view.left_out > 0 && html`<p class="note">${H.number(view.left_out)} items are not in this file.</p>`}
        ${!H.source.isLive && html`<${Holding} />`}
        ${view.note && html`<details><summary>The head, signed</summary><pre>${view.note}</pre></details>`}
        <div class="grid figures">${figures.map(([value, name]) => html`<div class="panel"><div class="figure">${H.number(value)}</div><p>${name}</p></div>`)}</div>
        <section class="panel"><h2>Growth</h2><${Growth} rows=${view.growth} /></section>
        <div class="pair"><section class="panel"><h2>Kinds</h2><${H.Table} rows=${kinds} label="kinds" /></section>
        <section class="panel"><h2>Last events</h2><${H.Table} rows=${view.events} columns=${["commit", "op", "item", "episode", "because"]} label="events" /></section></div>`;
    }}<//>`;
  };

  H.Time = ({ query, go }) => {
    const newest = H.useLoad(() => H.source.overview(), []);
    const state = H.useLoad(async () => {
      if (!newest.value) return undefined;
      const to = query.to === undefined ? newest.value.commit : Number(query.to);
      const from = query.from === undefined ? Math.max(0, to - 1) : Number(query.from);
      return H.source.diff(from, to);
    }, [query.from, query.to, newest.value]);
    if (!H.source.isLive) return html`<${H.Head} title="Time" /><p>A file shows one moment: run <code>holotype inspect</code> on the database.</p>`;
    return html`<${H.Head} title="Time" lead="What was added between two commits, and whose standing changed." />
      <${H.Loaded} state=${newest}>${({ commit }) => {
        const to = query.to === undefined ? commit : Number(query.to);
        const from = query.from === undefined ? Math.max(0, to - 1) : Number(query.from);
        const move = (name) => (event) => go({ from, to, [name]: event.target.value });
        return html`<div class="panel pair"><label>From commit <b>${from}</b><input type="range" min="0" max=${commit} value=${from} onChange=${move("from")} /></label>
          <label>To commit <b>${to}</b><input type="range" min="0" max=${commit} value=${to} onChange=${move("to")} /></label>
          <p>As of commit ${to}: <a href=${`#/items?as-of=${to}`}>all items</a>, <a href=${`#/items?layer=recall&active=true&as-of=${to}`}>what was believed</a>, <a href=${`#/items?layer=recall&active=false&as-of=${to}`}>what was valid no more</a></p></div>`;
      }}<//>
      <${H.Loaded} state=${state}>${(found) => html`
        <section class="panel"><h2>${H.number(found.changed_count)} changed</h2>${found.changed.map((row) => html`<div class="answer"><div class="row"><span class="tilde" aria-hidden="true">~</span><${H.Key} name=${row.key} /><span class="when">${row.kind}</span>
          ${row.changes.map((change) => html`<span>${change.attribute}: <${H.Tag}>${String(change.from)}<//> → <${H.Tag}>${String(change.to)}<//></span>`)}</div><p>${row.text}</p></div>`)}</section>
        <section class="panel"><h2>${H.number(found.added_count)} added</h2>${found.added.map((row) => html`<div class="answer"><div class="row"><span class="plus" aria-hidden="true">+</span><${H.Key} name=${row.key} /><span class="when">${row.kind}</span><${H.Standing} item=${row} /></div><p>${row.text}</p></div>`)}</section>
        <section class="panel"><h2>Events</h2><${H.Table} rows=${found.events} columns=${["commit", "time", "op", "item", "episode", "because"]} label="events" /></section>`}<//>`;
  };

  const CHECKS = [
    ["verify", "Check every hash, pointer and derived file"], ["quotes", "Hash every quote again"],
    ["index", "Estimate the recall of the vector index"], ["audit", "Measure what was read and written"],
  ];

  H.Health = () => {
    const [checks, setChecks] = useState({});
    const state = H.useLoad(() => H.source.health(checks), [JSON.stringify(checks)]);
    if (!H.source.isLive) return html`<${H.Head} title="Health" /><p>A file has no health: run <code>holotype verify</code> on the database.</p>`;
    return html`<${H.Head} title="Health" />
      <p class="row">${CHECKS.map(([name, shown]) => html`<button class=${checks[name] ? "" : "main"} aria-pressed=${Boolean(checks[name])} onClick=${() => setChecks({ ...checks, [name]: checks[name] ? undefined : 1 })}>${shown}</button>`)}</p>
      <${H.Loaded} state=${state}>${(view) => html`
      ${view.verified && html`<section class="panel"><h2>Verification</h2><${H.Table} rows=${view.verified} label="verification" /></section>`}
      ${view.quotes && html`<section class="panel"><h2>Quotes</h2><p>${H.number(view.quotes.holding)} of ${H.number(view.quotes.checked)} quotes hold.</p>
        ${view.quotes.dangling.length > 0 && html`<${H.Table} rows=${view.quotes.dangling} label="quotes that do not hold" />`}</section>`}
      ${view.index && html`<section class="panel"><h2>Recall of the index</h2>${view.index.length ? html`<${H.Table} rows=${view.index.map((row) => ({ ...row, recall: row.recall.toFixed(3) }))} label="recall of the index" />` : html`<p>There are no vectors.</p>`}</section>`}
      ${view.audit && html`<section class="panel"><h2>Audit</h2><${H.Table} rows=${view.audit} columns=${["measure", "value", "of"]} label="audit" /></section>`}
      <div class="pair"><section class="panel"><h2>Statistics</h2><${H.Table} rows=${view.stats} label="statistics" />
        <h2>Writer</h2><p>${view.lease.held ? "A writer has the database open" : "No writer has the database open"}${view.lease.process ? `; process ${view.lease.process} wrote last` : ""}${view.lease.since ? html`, <${H.When} time=${view.lease.since} />` : ""}.</p></section>
      <section class="panel"><h2>Settings</h2><${H.Table} rows=${view.settings} columns=${["setting", "value"]} label="settings" /></section></div>
      <section class="panel"><h2>Without support</h2><${H.Table} rows=${view.unsupported} label="unsupported items" /></section>
      <section class="panel"><h2>Largest items</h2><${H.Table} rows=${view.largest} label="largest items" /></section>
      <section class="panel"><h2>Episodes</h2><${H.Table} rows=${view.episodes} label="episodes" /></section>`}<//>`;
  };

  H.Live = () => {
    const [events, setEvents] = useState([]);
    const [error, setError] = useState(null);
    useEffect(() => {
      if (!H.source.isLive) return undefined;
      let since;
      let timer;
      let stopped = false;
      const next = async () => {
        try {
          const found = await H.source.events(since);
          setError(null);
          if (found.events.length) setEvents((known) => [...found.events.reverse(), ...known].slice(0, 500));
          since = found.commit;
        } catch (problem) { setError(problem); }
        if (!stopped) timer = setTimeout(next, 1000);
      };
      next();
      return () => { stopped = true; clearTimeout(timer); };
    }, []);
    if (!H.source.isLive) return html`<${H.Head} title="Live" /><p>A file does not change.</p>`;
    return html`<${H.Head} title="Live" lead="Changes as they are committed, newest first." />
      ${error && html`<p class="note error" role="alert">${error.message}</p>`}
      <section class="panel" aria-live="polite">${events.length ? html`<${H.Table} rows=${events} columns=${["commit", "time", "op", "item", "episode", "because"]} label="events" />` : html`<p>Waiting for a commit.</p>`}</section>`;
  };
}
