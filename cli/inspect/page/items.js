// The list of items: facets, search, and rows that are loaded as they come into view.
"use strict";
{
  const { html, useEffect, useRef, useState } = H;
  const PART = 100;

  H.Items = ({ query, go, at }) => {
    const [rows, setRows] = useState(new Map());
    const [view, setView] = useState({ total: 0 });
    const [facets, setFacets] = useState({});
    const [first, setFirst] = useState(0);
    const [error, setError] = useState(null);
    const [height, setHeight] = useState(64);
    const box = useRef(null);
    const asked = useRef(new Set());
    const name = JSON.stringify([query, at]);

    const load = async (skip) => {
      const mine = asked.current;
      if (mine.has(skip)) return;
      mine.add(skip);
      try {
        // The other parts are of the list that the first one opened, whatever is written meanwhile.
        const found = await H.source.items({ ...query, skip, limit: PART, as_of: at, commit: mine.commit });
        // The facets or the search have changed meanwhile.
        if (asked.current !== mine) return;
        if (skip === 0) {
          mine.commit = found.commit;
          setView(found);
        }
        setRows((known) => {
          const more = new Map(known);
          found.rows.forEach((row, nth) => more.set(skip + nth, row));
          return more;
        });
      } catch (problem) { setError(problem); }
    };

    const countFacets = async () => {
      const mine = asked.current;
      try {
        const found = await H.source.facets({ ...query, as_of: at });
        if (asked.current === mine) setFacets(found.facets);
      } catch (problem) { setError(problem); }
    };

    useEffect(() => {
      asked.current = new Set();
      setRows(new Map());
      setFirst(0);
      setError(null);
      if (box.current) box.current.scrollTop = 0;
      setHeight(4 * parseFloat(getComputedStyle(document.documentElement).fontSize));
      load(0);
      countFacets();
    }, [name]);

    const shown = 24;
    const onScroll = () => {
      const at = Math.floor(box.current.scrollTop / height);
      setFirst(at);
      load(Math.floor(at / PART) * PART);
      load(Math.floor((at + shown) / PART) * PART);
    };
    const set = (facet, value) => go({ ...query, [facet]: value });
    const last = Math.min(view.total, first + shown);
    const visible = [];
    for (let nth = Math.max(0, first - 6); nth < last; nth++) visible.push(nth);
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
        </select></label>`)}</div>
      <p class="lead" role="status">${H.number(view.total)} ${view.total === 1 ? "item" : "items"}</p>
      ${error && html`<p class="note error" role="alert">${error.message}</p>`}
      <div class="list" ref=${box} onScroll=${onScroll} tabindex="0" role="region" aria-label="items">
        <ol style=${{ height: `${view.total * height}px` }}>${visible.map((nth) => {
          const row = rows.get(nth);
          return html`<li key=${nth} style=${{ top: `${nth * height}px` }} aria-setsize=${view.total} aria-posinset=${nth + 1}>${row && html`
            <a href=${H.linkTo(row.key, at)}><span class="text">${row.text || "(no text)"}</span><span><${H.Standing} item=${row} /></span>
            <span class="under"><span class="key">${row.key}</span> · ${row.kind}${row.tool ? ` ${row.tool}` : ""}${row.episode ? ` · ${row.episode}` : ""}${row.step !== undefined ? ` step ${row.step}` : ""}${row.speaker ? ` · ${row.speaker}` : ""} · <${H.When} time=${row.time} /></span></a>`}</li>`;
        })}</ol>
      </div>`;
  };
}
