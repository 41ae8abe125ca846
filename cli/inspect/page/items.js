// The list of items: facets, search, and rows that are loaded as they come into view.
"use strict";
{
  const { html, useEffect, useRef, useState } = H;
  const PART = 100;
  const SHOWN = 24;
  const BEFORE = 6;

  H.Items = ({ query, go, at }) => {
    const [, redraw] = useState(0);
    const [view, setView] = useState({ total: 0 });
    const [facets, setFacets] = useState({});
    const [first, setFirst] = useState(0);
    const [error, setError] = useState(null);
    const [height, setHeight] = useState(64);
    const box = useRef(null);
    // The open list: its parts by number, those on their way, and those in view.
    const list = useRef(null);
    const name = JSON.stringify([query, at]);

    const load = async (part) => {
      const mine = list.current;
      const asking = new AbortController();
      mine.asked.set(part, asking);
      try {
        // The other parts are of the list that the first one opened, whatever is written meanwhile.
        const asked = { ...query, skip: part * PART, limit: PART, as_of: at, commit: mine.commit };
        const found = await H.source.items(asked, asking.signal);
        // The facets or the search have changed meanwhile.
        if (list.current !== mine) return;
        if (part === 0) {
          mine.commit ??= found.commit;
          setView(found);
        }
        mine.parts.set(part, found.rows);
        if (mine.inView.includes(part)) redraw((times) => times + 1);
      } catch (problem) {
        if (problem.name !== "AbortError") setError(problem);
      } finally { if (mine.asked.get(part) === asking) mine.asked.delete(part); }
    };

    // Asks for the parts in view, and no longer for those that were scrolled past.
    const show = (row) => {
      const { parts, asked } = list.current;
      const inView = [...new Set([Math.max(0, row - BEFORE), row + SHOWN].map((at) => Math.floor(at / PART)))];
      list.current.inView = inView;
      for (const [part, asking] of asked) {
        if (part === 0 || inView.includes(part)) continue;
        asking.abort();
        // A part that comes into view again at once is asked for again.
        asked.delete(part);
      }
      for (const part of inView) if (!parts.has(part) && !asked.has(part)) load(part);
    };

    const countFacets = async () => {
      const mine = list.current;
      try {
        const found = await H.source.facets({ ...query, as_of: at });
        if (list.current === mine) setFacets(found.facets);
      } catch (problem) { setError(problem); }
    };

    useEffect(() => {
      list.current = { parts: new Map(), asked: new Map(), inView: [0], commit: undefined };
      setFirst(0);
      setError(null);
      if (box.current) box.current.scrollTop = 0;
      setHeight(4 * parseFloat(getComputedStyle(document.documentElement).fontSize));
      load(0);
      countFacets();
    }, [name]);

    const onScroll = () => {
      const row = Math.floor(box.current.scrollTop / height);
      setFirst(row);
      show(row);
    };
    const set = (facet, value) => go({ ...query, [facet]: value });
    const last = Math.min(view.total, first + SHOWN);
    const visible = [];
    for (let nth = Math.max(0, first - BEFORE); nth < last; nth++) visible.push(nth);
    const rowAt = (nth) => list.current?.parts.get(Math.floor(nth / PART))?.[nth % PART];
    return html`
      <${H.Head} title="Items" lead="Everything that was recorded and distilled, newest first." />
      <form role="search" onSubmit=${(event) => { event.preventDefault(); set("q", event.target.q.value); }}>
        <div class="row"><div class="grow"><label class="skip" for="q">Search</label>
        <input id="q" name="q" type="search" placeholder="Search texts and keys" key=${query.q} defaultValue=${query.q || ""} /></div>
        <button class="main">Search</button></div>
      </form>
      <div class="facets">${H.FACETS.map((facet) => html`
        <label>${facet}<select value=${query[facet] || ""} onChange=${(event) => set(facet, event.target.value)}>
          <option value="">all</option>
          ${(facets[facet] || []).map((row) => {
            const value = Array.isArray(row[facet]) ? null : row[facet];
            return value !== null && value !== undefined && html`<option value=${String(value)}>${String(value)} (${H.number(row.count)})</option>`;
          })}
          ${query[facet] && !(facets[facet] || []).some((row) => String(row[facet]) === query[facet]) && html`<option value=${query[facet]}>${query[facet]}</option>`}
        </select></label>`)}
        ${[["since", "from"], ["until", "before"]].map(([name, shown]) => html`<label>${shown}<input type="date" value=${query[name] || ""} onChange=${(event) => set(name, event.target.value)} /></label>`)}</div>
      <p class="lead" role="status">${H.number(view.total)} ${view.total === 1 ? "item" : "items"}</p>
      ${error && html`<p class="note error" role="alert">${error.message}</p>`}
      <div class="list" ref=${box} onScroll=${onScroll} tabindex="0" role="region" aria-label="items">
        <ol style=${{ height: `${view.total * height}px` }}>${visible.map((nth) => {
          const row = rowAt(nth);
          return html`<li key=${nth} style=${{ top: `${nth * height}px` }} aria-setsize=${view.total} aria-posinset=${nth + 1}>${row && html`
            <a href=${H.linkTo(row.key, at)}><span class="text">${row.text || "(no text)"}</span><span><${H.Standing} item=${row} /></span>
            <span class="under"><span class="key">${row.key}</span> · ${row.kind}${row.tool ? ` ${row.tool}` : ""}${row.episode ? ` · ${row.episode}` : ""}${row.step !== undefined ? ` step ${row.step}` : ""}${row.speaker ? ` · ${row.speaker}` : ""} · <${H.When} time=${row.time} /></span></a>`}</li>`;
        })}</ol>
      </div>`;
  };
}
