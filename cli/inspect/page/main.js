// The frame of the page, and the view that its address names: `#/why/KEY?as-of=7`, `#/items?kind=fact`.
"use strict";
{
  const { html, render, useEffect, useState } = H;
  const VIEWS = [["", "Overview"], ["items", "Items"], ["recall", "Recall"], ["time", "Time"], ["health", "Health"], ["live", "Live"]];

  const read = () => {
    const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
    const [view, ...rest] = path.split("/");
    return { view, name: decodeURIComponent(rest.join("/")), query: Object.fromEntries(new URLSearchParams(query || "")) };
  };

  const Page = () => {
    const [place, setPlace] = useState(read());
    useEffect(() => {
      const onMove = () => {
        H.hasMoved = true;
        setPlace(read());
        scrollTo(0, 0);
      };
      addEventListener("hashchange", onMove);
      return () => removeEventListener("hashchange", onMove);
    }, []);
    const { "as-of": at, ...query } = place.query;
    const go = (values) => { location.hash = `#/${place.view}?${H.queryOf({ ...values, "as-of": at })}`; };
    const views = {
      "": () => html`<${H.Overview} at=${at} />`,
      items: () => html`<${H.Items} query=${query} go=${go} at=${at} />`,
      why: () => html`<${H.Item} name=${place.name} at=${at} />`,
      recall: () => html`<${H.Recall} query=${query} go=${go} />`,
      time: () => html`<${H.Time} query=${query} go=${go} />`,
      health: () => html`<${H.Health} />`,
      live: () => html`<${H.Live} />`,
    };
    const view = views[place.view] || (() => html`<${H.Head} title="No such view" /><p><a href="#/">Overview</a></p>`);
    const now = place.view === "why" ? "items" : place.view;
    return html`<a class="skip" href="#title" onClick=${(event) => { event.preventDefault(); document.getElementById("title")?.focus(); }}>Skip to the content</a>
      <div class="frame"><nav class="side" aria-label="views"><div class="name">Holotype <small>inspector</small></div>
        <ul>${VIEWS.map(([path, title]) => html`<li><a href=${`#/${path}`} aria-current=${now === path ? "page" : undefined}>${title}</a></li>`)}</ul>
        ${at && html`<p class="then">As of commit ${at}. <a href=${`#/${place.view}${place.name ? `/${encodeURIComponent(place.name)}` : ""}`}>Now</a></p>`}</nav>
      <main>${view()}</main></div>`;
  };

  const root = document.getElementById("page");
  // A server tells at the start whether the page may change the memory.
  const start = async () => {
    await H.source.open();
    H.canWrite = H.source.isLive && (await H.fetchJson("/api/rights")).can_write;
  };
  start().then(
    () => { root.textContent = ""; render(html`<${Page} />`, root); },
    (error) => { root.textContent = ""; render(html`<main><h1>The inspector cannot open</h1><p class="note error" role="alert">${error.message}</p></main>`, root); },
  );
}
