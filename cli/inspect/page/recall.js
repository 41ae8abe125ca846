// The recall laboratory: a question, its answer with the parts of each score, the steps that led to it, and why an item
// is in the answer or not. Two sets of clauses are run beside each other.
"use strict";
{
  const { html, useState } = H;
  const PARTS = ["similarity", "words", "recency", "status_score", "source_score", "utility_score", "conflict_score"];

  const Bars = ({ row }) => {
    const parts = PARTS.map((name) => [name.replace("_score", ""), row[name] || 0]).filter(([, value]) => value !== 0);
    const most = Math.max(1, ...parts.map(([, value]) => Math.abs(value)));
    return html`<div class="bars">${parts.map(([name, value]) => html`<span>${name}</span>
      <div class="bar ${value < 0 ? "minus" : ""}" style=${{ width: `${(100 * Math.abs(value)) / most}%` }}></div><span>${value.toFixed(3)}</span>`)}</div>`;
  };

  const Row = ({ row, nth }) => html`<article class="answer">
    <div class="row"><b>${nth + 1}</b><${H.Key} name=${row.key} /><span class="when">${row.kind}${row.tool ? ` ${row.tool}` : ""}</span><${H.When} time=${row.time} /><${H.Standing} item=${row} /></div>
    <p class="said">${row.text}</p>
    ${(row.lines || []).map((line) => html`<p class="line">${line.order}: <b>${line.text}</b> <${H.Key} name=${line.key} /> <${H.When} time=${line.time} /></p>`)}
    ${row.more > 0 && html`<p class="line">${row.more} more</p>`}
    ${(row.citations || []).map((cited) => html`<p class="line"><${H.Key} name=${cited.target} /> ${cited.field}[${cited.start}..${cited.end}] <${H.Tag}>${cited.verdict}<//></p>`)}
    <details><summary>Score ${row.score?.toFixed(3)}</summary><${Bars} row=${row} /></details>
  </article>`;

  const Why = ({ asked }) => {
    const [found, setFound] = useState(null);
    const ask = async (event) => {
      event.preventDefault();
      const key = event.target.elements.key.value.trim();
      try { setFound(await H.source.why({ ...asked, key })); } catch (error) { setFound({ error }); }
    };
    return html`<section class="panel"><h2>Why, or why not?</h2>
      <form class="row" onSubmit=${ask}><div class="grow"><label class="skip" for="why">Key of an item</label><input id="why" name="key" required placeholder="Key of an item" /></div><button>Explain</button></form>
      ${found?.error && html`<p class="note error" role="alert">${found.error.message}</p>`}
      ${found?.notes?.map((note) => html`<p class="note">${note}</p>`)}
      ${found?.rows && html`<${H.Table} rows=${found.rows} label="tests" />`}</section>`;
  };

  // The items that each step leaves, and the time it took.
  const Funnel = ({ steps }) => {
    const sizes = steps.map((step) => step.items ?? step.ranked ?? step.left_out ?? 0);
    const most = Math.max(1, ...sizes);
    const told = (step) => {
      if (step.left_out !== undefined) return `${H.number(step.left_out)} left out`;
      if (step.items !== undefined) return `${H.number(step.items)} ${step.step === "answer" ? "rows" : "items"}`;
      return `${H.number(step.ranked ?? 0)} ranked of ${H.number(step.eligible ?? 0)}`;
    };
    return html`<details open><summary>Funnel</summary><div class="bars funnel">${steps.map((step, nth) => html`<span>${step.step}</span>
      <div class="bar ${step.left_out !== undefined ? "minus" : ""}" style=${{ width: `${(100 * sizes[nth]) / most}%` }}></div>
      <span>${told(step)}${step.micros !== undefined ? `, ${(step.micros / 1000).toFixed(1)} ms` : ""}</span>`)}</div></details>`;
  };

  // Answers that were kept with a receipt: each is found again as of its commit.
  const Receipts = ({ asked }) => {
    const [times, setTimes] = useState(0);
    const [run, setRun] = useState(null);
    const [problem, setProblem] = useState(null);
    const state = H.useLoad(() => H.source.receipts(), [times]);
    const attempt = (call) => async () => { try { await call(); setProblem(null); } catch (error) { setProblem(error); } };
    const keep = attempt(async () => { await H.source.keepReceipt(asked); setTimes(times + 1); });
    const replay = (receipt) => attempt(async () => setRun(await H.source.replay(receipt)));
    return html`<section class="panel"><h2>Receipts</h2>
      ${H.canWrite && asked.question && html`<p><button onClick=${keep}>Keep the answer above with a receipt</button></p>`}
      ${problem && html`<p class="note error" role="alert">${problem.message}</p>`}
      <${H.Loaded} state=${state}>${({ receipts }) => (receipts.length ? receipts.map((row) => html`<div class="row answer">
        <button onClick=${replay(row.receipt)}>Replay ${row.receipt}</button><span class="when">commit ${row.commit}, ${H.number(row.rows)} rows</span><${H.When} time=${row.time} /><code>${row.statement}</code></div>`)
        : html`<p class="lead">No answer was kept: ask a recall <code>with receipt</code>.</p>`)}<//></section>
      ${run && html`<${Run} run=${run} />`}`;
  };

  const Run = ({ run }) => {
    if (run.error) return html`<section class="panel"><p class="note error" role="alert">${run.error.message}</p></section>`;
    const { answer, steps } = run;
    const excluded = Object.entries(answer.excluded || {});
    return html`<section class="panel"><h2><code>${run.statement}</code></h2>
      <p class="lead">${answer.answerable ? "Answerable" : "Not answerable"}${excluded.length ? `; left out: ${excluded.map(([name, count]) => `${count} ${name}`).join(", ")}` : ""}.</p>
      ${answer.notes.map((note) => html`<p class="note">${note}</p>`)}
      ${answer.rows.length ? answer.rows.map((row, nth) => html`<${Row} row=${row} nth=${nth} />`) : html`<p>No rows.</p>`}
      ${run.funnel.length > 0 && html`<${Funnel} steps=${run.funnel} />`}
      <details class="steps"><summary>How it was found</summary><${H.Table} rows=${steps} columns=${["step", "detail"]} label="steps" /></details></section>`;
  };

  H.Recall = ({ query, go }) => {
    const state = H.useLoad(async () => {
      if (!query.q) return { runs: [] };
      const runs = [query.a || "", ...(query.b !== undefined ? [query.b] : [])].map((clauses) =>
        H.source.recall({ question: query.q, clauses }).catch((error) => ({ error })));
      return { runs: await Promise.all(runs) };
    }, [query.q, query.a, query.b]);
    const ask = (event) => {
      event.preventDefault();
      const { question, a, b } = event.target.elements;
      go({ q: question.value, a: a.value, ...(b.value.trim() ? { b: b.value } : {}) });
    };
    if (!H.source.isLive) return html`<${H.Head} title="Recall" /><p>A file answers no questions: run <code>holotype inspect</code> on the database.</p>`;
    return html`<${H.Head} title="Recall" lead="Ask as the agent asks, and see what leads to the answer." />
      <form class="panel" onSubmit=${ask}>
        <p><label for="question">Question</label><input id="question" name="question" key=${query.q} defaultValue=${query.q || ""} required placeholder="what does UA123 cost?" /></p>
        <div class="pair"><p><label for="a">Clauses</label><input id="a" class="mono" name="a" key=${query.a} defaultValue=${query.a || ""} placeholder="in episode 'trip' limit 5" /></p>
        <p><label for="b">Clauses to compare with</label><input id="b" class="mono" name="b" key=${query.b} defaultValue=${query.b || ""} placeholder="score profile archive" /></p></div>
        <button class="main">Ask</button></form>
      <${H.Loaded} state=${state}>${({ runs }) => html`<div class="pair">${runs.map((run) => html`<${Run} run=${run} />`)}</div>
        ${runs.length > 0 && html`<${Why} asked=${{ question: query.q, clauses: query.a || "" }} />`}`}<//>
      <${Receipts} asked=${{ question: query.q, clauses: query.a || "" }} />`;
  };
}
