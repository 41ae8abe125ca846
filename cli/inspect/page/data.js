// Where the page's data come from: a server (`holotype inspect`) or this file (`holotype export --html`).
//
// Both answer the same questions: overview, items, item, diff, events, health, recall, why. A file answers those that
// its data can: it has no recall, and no time but its own. Nothing here parses text of the memory as HTML.
"use strict";
const H = {};
Object.assign(H, htmPreact);

H.fetchJson = async (path, body, signal) => {
  const options = body === undefined ? { signal } : { method: "POST", body: JSON.stringify(body) };
  const response = await fetch(path, { credentials: "same-origin", ...options });
  const value = await response.json();
  if (!response.ok) throw new Error(value.error || response.statusText);
  return value;
};

H.queryOf = (values) =>
  Object.entries(values).filter(([, value]) => value !== undefined && value !== null && value !== "")
    .map(([name, value]) => `${name}=${encodeURIComponent(value)}`).join("&");

H.FACETS = ["layer", "kind", "status", "support", "episode", "labels", "source", "active"];

// The server.
H.live = {
  isLive: true,
  async open() {
    const token = new URLSearchParams(location.hash.slice(1)).get("token");
    if (token) {
      const response = await fetch("/session", { method: "POST", body: token });
      if (!response.ok) throw new Error("The token in the address is not that of this run: use the address that `holotype inspect` printed.");
      history.replaceState(null, "", "#/");
    }
  },
  overview: (at) => H.fetchJson(`/api/overview?${H.queryOf({ as_of: at })}`),
  items: (query, signal) => H.fetchJson(`/api/items?${H.queryOf(query)}`, undefined, signal),
  facets: (query) => H.fetchJson(`/api/facets?${H.queryOf(query)}`),
  item: (key, at) => H.fetchJson(`/api/why/${encodeURIComponent(key)}?${H.queryOf({ as_of: at })}`),
  diff: (from, to) => H.fetchJson(`/api/diff?${H.queryOf({ from, to })}`),
  events: (since) => H.fetchJson(`/api/events?${H.queryOf({ since })}`),
  health: (checks) => H.fetchJson(`/api/health?${H.queryOf(checks)}`),
  receipts: () => H.fetchJson("/api/receipts"),
  replay: (receipt) => H.fetchJson("/api/replay", { receipt }),
  keepReceipt: (asked) => H.fetchJson("/api/receipt", asked),
  change: (asked) => H.fetchJson("/api/change", asked),
  recall: (asked) => H.fetchJson("/api/recall", asked),
  why: (asked) => H.fetchJson("/api/why", asked),
};

// The file: its data are packed in the document.
H.file = {
  isLive: false,
  async open() {
    this.data = await H.unpacked(JSON.parse(document.getElementById("memory").textContent));
    this.byKey = new Map(this.data.items.map((item) => [item.key, item]));
    this.out = new Map();
    this.in = new Map();
    for (const [from, edge, to] of this.data.edges) {
      (this.out.get(from) || this.out.set(from, []).get(from)).push([edge, to]);
      (this.in.get(to) || this.in.set(to, []).get(to)).push([edge, from]);
    }
  },
  overview() { return this.data.overview; },
  matching(query) {
    const text = (query.q || "").toLowerCase();
    const [since, until] = [query.since, query.until].map((day) => (day ? Date.parse(day) : NaN));
    return this.data.items.filter((item) =>
      H.FACETS.every((facet) => !query[facet] || H.valuesOf(item[facet]).includes(query[facet])) &&
      !(since > (Date.parse(item.time) || -Infinity)) && !(until <= (Date.parse(item.time) || Infinity)) &&
      (!text || item.text.toLowerCase().includes(text) || item.key.toLowerCase().includes(text)));
  },
  items(query) {
    const rows = this.matching(query);
    const skip = query.skip || 0;
    return { total: rows.length, skip, rows: rows.slice(skip, skip + (query.limit || 100)) };
  },
  facets(query) {
    const rows = this.matching(query);
    const counted = {};
    for (const facet of H.FACETS) {
      const counts = new Map();
      for (const item of rows) for (const value of H.valuesOf(item[facet])) counts.set(value, (counts.get(value) || 0) + 1);
      counted[facet] = [...counts].sort((a, b) => b[1] - a[1]).map(([value, count]) => ({ [facet]: value, count }));
    }
    return { facets: counted };
  },
  // Hashes every quote again, some at a time, so that the page can be used meanwhile.
  async checkQuotes(told) {
    const found = { checked: 0, holding: 0, missing: 0, wrong: [] };
    for (const [nth, item] of this.data.items.entries()) {
      for (const cited of item.citations) {
        const verdict = H.checkQuote(cited, this.byKey.get(cited.target));
        if (verdict === "not in this file") found.missing += 1;
        else {
          found.checked += 1;
          if (verdict === "ok") found.holding += 1;
          else found.wrong.push({ key: item.key, item: cited.target, verdict });
        }
      }
      if (nth % 200 === 199) await new Promise((resolve) => setTimeout(resolve));
    }
    told(found);
  },
  walk(key, edges) {
    const found = [];
    const seen = new Set([key]);
    let roots = [key];
    for (let depth = 1; depth <= 8 && roots.length; depth++) {
      const next = [];
      for (const root of roots) {
        for (const [edge, other] of edges.get(root) || []) {
          if (seen.has(other)) continue;
          seen.add(other);
          next.push(other);
          found.push({ ...(this.byKey.get(other) || { key: other, text: "(not in this file)" }), depth, root, edge });
        }
      }
      roots = next;
    }
    return found;
  },
  item(key) {
    const item = this.byKey.get(key);
    if (!item) throw new Error(`${key} is not in this file.`);
    const targets = {};
    for (const cited of item.citations) if (this.byKey.has(cited.target)) targets[cited.target] = this.byKey.get(cited.target);
    const citations = item.citations.map((cited) => ({ ...cited, verdict: H.checkQuote(cited, targets[cited.target]) }));
    return { item, citations, targets, history: [], conflicts: [], sources: this.walk(key, this.out), dependents: this.walk(key, this.in) };
  },
};

// The data of a file are an object, or its text by gzip and base64.
H.unpacked = async (data) => {
  if (typeof data !== "string") return data;
  if (!globalThis.DecompressionStream) throw new Error("This browser cannot unpack the file: export it with --plain.");
  const bytes = Uint8Array.from(atob(data), (c) => c.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).json();
};

// The values of a facet of an item, as texts.
H.valuesOf = (value) => (value === undefined || value === null ? [] : [value].flat().map(String));

H.source = document.getElementById("memory") ? H.file : H.live;

// The bytes of a span, and BLAKE3 over them: a quote holds if its recorded hash is that of the bytes it cites.
H.encoder = new TextEncoder();
H.decoder = new TextDecoder();
H.fieldOf = (item, name) => (item?.fields || []).find((field) => field.name === name)?.text;

H.checkQuote = (cited, target) => {
  const text = H.fieldOf(target, cited.field);
  if (text === undefined) return "not in this file";
  const bytes = H.encoder.encode(text).slice(cited.start, cited.end);
  return H.blake3(bytes) === cited.hash ? "ok" : "mismatch";
};

H.blake3 = (input) => {
  const IV = [0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19];
  const ORDER = [2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8];
  const [START, END, PARENT, ROOT] = [1, 2, 4, 8];
  const turn = (x, n) => (x >>> n) | (x << (32 - n));
  const compress = (chain, words, counter, length, flags) => {
    const s = [...chain, ...IV.slice(0, 4), counter | 0, 0, length, flags];
    let m = words;
    const mix = (a, b, c, d, x, y) => {
      s[a] = (s[a] + s[b] + x) | 0; s[d] = turn(s[d] ^ s[a], 16); s[c] = (s[c] + s[d]) | 0; s[b] = turn(s[b] ^ s[c], 12);
      s[a] = (s[a] + s[b] + y) | 0; s[d] = turn(s[d] ^ s[a], 8); s[c] = (s[c] + s[d]) | 0; s[b] = turn(s[b] ^ s[c], 7);
    };
    for (let round = 0; round < 7; round++) {
      mix(0, 4, 8, 12, m[0], m[1]); mix(1, 5, 9, 13, m[2], m[3]); mix(2, 6, 10, 14, m[4], m[5]); mix(3, 7, 11, 15, m[6], m[7]);
      mix(0, 5, 10, 15, m[8], m[9]); mix(1, 6, 11, 12, m[10], m[11]); mix(2, 7, 8, 13, m[12], m[13]); mix(3, 4, 9, 14, m[14], m[15]);
      m = ORDER.map((place) => m[place]);
    }
    return [0, 1, 2, 3, 4, 5, 6, 7].map((at) => s[at] ^ s[at + 8]);
  };
  const wordsOf = (bytes) => {
    const block = new Uint8Array(64);
    block.set(bytes);
    return [...new Int32Array(block.buffer)];
  };
  const chunk = (bytes, counter, root) => {
    let chain = IV;
    const blocks = Math.max(1, Math.ceil(bytes.length / 64));
    for (let at = 0; at < blocks; at++) {
      const block = bytes.slice(64 * at, 64 * at + 64);
      const last = at === blocks - 1;
      chain = compress(chain, wordsOf(block), counter, block.length, (at === 0 ? START : 0) | (last ? END | (root ? ROOT : 0) : 0));
    }
    return chain;
  };
  const tree = (bytes, first, root) => {
    if (bytes.length <= 1024) return chunk(bytes, first, root);
    let left = 1024;
    while (left * 2 < bytes.length) left *= 2;
    const parts = [tree(bytes.slice(0, left), first, false), tree(bytes.slice(left), first + left / 1024, false)];
    return compress(IV, parts.flat(), 0, 64, PARENT | (root ? ROOT : 0));
  };
  return tree(input, 0, true).map((word) => {
    const u = word >>> 0;
    return [u & 255, (u >>> 8) & 255, (u >>> 16) & 255, u >>> 24].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  }).join("");
};
