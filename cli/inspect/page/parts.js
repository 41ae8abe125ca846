// Parts that views share: tags, times, tables, quotes, and the state of a request.
"use strict";
{
  const { html, useEffect, useState } = H;

  const SHAPES = { good: "●", bad: "▲", warn: "◆", plain: "○" };
  const TONES = {
    success: "good", supported: "good", ok: "good", failed: "bad", unsupported: "bad", mismatch: "bad", unresolved: "bad",
    redacted: "warn", weakened: "warn", "not in this file": "warn",
  };

  H.Tag = ({ children }) => {
    const word = String(children);
    const tone = TONES[word] || "plain";
    return html`<span class="tag ${tone}"><span aria-hidden="true">${SHAPES[tone]}</span>${word}</span>`;
  };

  H.Standing = ({ item }) => html`
    ${item.status && html`<${H.Tag}>${item.status}<//>`}
    ${item.support && item.support !== "supported" && html`<${H.Tag}>${item.support}<//>`}
    ${item.active === false && html`<span class="tag warn"><span aria-hidden="true">◇</span>inactive</span>`}`;

  const FORMAT = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });

  // A time in the reader's zone, with the exact one as its title.
  H.When = ({ time }) => {
    if (!time) return null;
    const date = new Date(time);
    const shown = Number.isNaN(date.getTime()) ? time : FORMAT.format(date);
    return html`<time class="when" datetime=${time} title=${time}>${shown}</time>`;
  };

  H.linkTo = (key, at) => `#/why/${encodeURIComponent(key)}${at ? `?as-of=${at}` : ""}`;
  H.Key = ({ name, at }) => html`<a class="key" href=${H.linkTo(name, at)}>${name}</a>`;
  H.number = (value) => (typeof value === "number" ? value.toLocaleString() : value);

  H.Table = ({ rows, columns, label }) => {
    if (!rows?.length) return html`<p class="lead">None.</p>`;
    const names = columns || Object.keys(rows[0]);
    const isNumber = (name) => rows.every((row) => row[name] === undefined || typeof row[name] === "number");
    const cell = (row, name) => {
      const value = row[name];
      if (value === undefined || value === null) return "";
      if (name === "key" || name === "item") return typeof value === "string" ? html`<${H.Key} name=${value} />` : value;
      if (name === "time") return html`<${H.When} time=${value} />`;
      if (name === "status" || name === "support" || name === "verdict") return html`<${H.Tag}>${value}<//>`;
      return typeof value === "object" ? JSON.stringify(value) : typeof value === "boolean" ? String(value) : H.number(value);
    };
    return html`<div class="scroll" tabindex="0" role="region" aria-label=${label || "table"}><table>
      <thead><tr>${names.map((name) => html`<th scope="col" class=${isNumber(name) ? "number" : ""}>${name}</th>`)}</tr></thead>
      <tbody>${rows.map((row) => html`<tr>${names.map((name) => html`<td class=${isNumber(name) ? "number" : ""}>${cell(row, name)}</td>`)}</tr>`)}</tbody>
    </table></div>`;
  };

  // Splits a text at spans of bytes: [[text, is a quote]].
  H.quoted = (text, spans) => {
    const bytes = H.encoder.encode(text || "");
    const sorted = spans.filter(({ start, end }) => start < end && end <= bytes.length).sort((a, b) => a.start - b.start);
    const parts = [];
    let at = 0;
    for (const { start, end } of sorted) {
      if (end <= at) continue;
      const from = Math.max(start, at);
      parts.push([H.decoder.decode(bytes.slice(at, from)), false], [H.decoder.decode(bytes.slice(from, end)), true]);
      at = end;
    }
    parts.push([H.decoder.decode(bytes.slice(at)), false]);
    return parts.filter(([part]) => part).map(([part, quote]) => (quote ? html`<mark>${part}</mark>` : part));
  };

  // Loads something, and again when what it depends on changes.
  H.useLoad = (load, on) => {
    const [state, setState] = useState({});
    useEffect(() => {
      let current = true;
      Promise.resolve().then(load).then(
        (value) => current && setState({ value }),
        (error) => current && setState({ error }),
      );
      return () => { current = false; };
    }, on);
    return state;
  };

  H.Loaded = ({ state, children }) => {
    if (state.error) return html`<p class="note error" role="alert">${state.error.message}</p>`;
    return state.value ? children(state.value) : html`<p class="lead" aria-busy="true">Loading…</p>`;
  };

  H.Head = ({ title, lead }) => {
    useEffect(() => {
      document.title = `${title} · Holotype inspector`;
      // A reader of the screen goes on where the new view begins.
      if (H.hasMoved) document.getElementById("title").focus({ preventScroll: true });
    }, [title]);
    return html`<h1 tabindex="-1" id="title">${title}</h1>${lead && html`<p class="lead">${lead}</p>`}`;
  };
}
