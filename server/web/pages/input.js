// SPDX-License-Identifier: Apache-2.0
// Input pipeline: where step time goes, and what the host does to feed the device.

import {h, plain} from '../lib/dom.js';
import * as api from '../lib/api.js';
import * as format from '../lib/format.js';
import {DataTable} from '../lib/table.js';
import {columns, column} from '../lib/gviz.js';
import {withUnits} from '../lib/units.js';
import {empty, diagnostics} from '../lib/notes.js';
import {steps} from './overview.js';
import {aboutInput, anySteps, dropDenial, dropForeign, remark, traceLink, xprofsAdvice} from './verdict.js';
import {parts} from '../lib/chart.js';
import {detail, facts} from '../lib/detail.js';

const SHARES = {timeInPercent: 'Share of input time', selfTimeInPercent: 'Own share of input time'};

// A link to the step of that name in the trace of the first host that has steps, as the table is of it; or null.
async function occurrence(ctx, name) {
  const answer = await api.tool(ctx.session.name, 'time_breakdown', ctx.hosts, {view: 'steps'}, ctx.signal).catch(() => null);
  const first = answer?.data.hosts.find((x) => x.steps?.step.length), n = Number(/\d+$/.exec(name)?.[0] ?? NaN);
  const at = first ? first.steps.step.indexOf(n) : -1;
  return at < 0 ? null : h('a', {href: traceLink(ctx, first.host, first.steps.begin_ps[at], first.steps.wall_ps[at])}, 'Trace');
}

export default {
  title: 'Input pipeline',
  tool: 'input_pipeline_analyzer',
  async render(ctx) {
    const found = api.tool(ctx.session.name, 'findings', ctx.hosts, {}, ctx.signal).then((a) => a.data, () => null);
    const all = (await ctx.load('input_pipeline_analyzer')).map(columns);
    const step = all.find((t) => column(t, 'stepnum')), host = all.find((t) => column(t, 'opName'));
    const advice = all.find((t) => t.columns.length === 1 && t.columns[0].id === 'link');
    const has = step?.length ? Promise.resolve(true) : anySteps(ctx);  // on some host
    const theirs = [];  // what XProf says
    ctx.root.append(h('h1', {}, 'Input pipeline'));
    if (step && step.props.input_conclusion) {
      const said = h('p', {}, step.props.input_conclusion);
      const what = step.length ? step.props.summary_nextstep || '' : '';
      const todo = what ? h('p', {class: 'muted'}, plain(what).text) : '';
      const lead = h('p', {class: 'headline', hidden: true});
      ctx.root.append(lead);
      theirs.push(said, todo);
      found.then((f) => {
        lead.hidden = !f?.devices || !f.times;
        if (!lead.hidden) lead.textContent = `Devices wait for input in ${format.fraction(f.times.input_percent / 100)} of the time.`;
      });
      Promise.all([found, has]).then(([f, any]) => {  // later, where nobody asked before: the page does not wait
        const text = aboutInput(step.props.input_conclusion, f, any);
        if (todo && text !== step.props.input_conclusion) todo.remove();
        if (todo) dropForeign(todo, [{said: what, element: todo}], f);
        said.textContent = text;
        remark(said, step.props.input_conclusion, f);
      });
    }
    if (step && step.length) {
      const names =
          step.columns.filter((c) => c.type === 'number' && /TimeMs$/.test(c.id) || c.id === 'stepnum');
      const cols = withUnits(names, ctx, 'input_pipeline_analyzer'), side = detail('Step'), number = column(step, 'stepnum').values;
      const table = new DataTable({
        columns: cols,
        length: step.length,
        caption: 'Steps',
        csv: 'steps.csv',
        onOpen: async (row) => {
          const seen = await occurrence(ctx, String(number[row]));
          side.show(`Step ${number[row]}`, [...facts(cols, row), ...(seen ? [['See also', seen]] : [])]);
        },
      });
      ctx.root.append(h('section', {class: 'card'}, h('h2', {}, 'Steps'), steps(step)),
          h('section', {class: 'card flush'}, table.element), side.element);
    } else {
      const none = empty('No steps in this profile',
          'Steps come from jax.profiler.StepTraceAnnotation, Keras callbacks or tf.profiler.experimental.Trace. Annotate the training loop and capture again.');
      ctx.root.append(none);
      has.then((any) => any && none.replaceWith(empty('No steps on hosts with a device', 'Overview shows those of the others.')));
    }
    if (host) {
      const p = host.props;
      const share = [
        ['Advanced file read', 'advanced_file_read_us'], ['Demanded file read', 'demanded_file_read_us'],
        ['Preprocessing', 'preprocessing_us'], ['Enqueue', 'enqueue_us'],
        ['Unclassified', 'unclassified_nonequeue_us']
      ].map(([label, id], i) => ({label, value: Number(p[id]) || 0, color: i}));
      const split = parts({label: 'Input time on the host', items: share, format: format.us});
      const table = new DataTable({
        columns: withUnits(host.columns, ctx, 'input_pipeline_analyzer').map((c) => (/Percent$/.test(c.id) ? {...c, label: SHARES[c.id], bar: true} : c)),
        length: host.length,
        caption: 'Input ops on the host',
        csv: 'input_ops.csv',
        facetColumns: ['category'],
        empty: 'No input op ran on the host.',
      });
      if (split) ctx.root.append(h('section', {class: 'card'}, h('h2', {}, 'Input time on the host'), split));
      ctx.root.append(h(
          'section', {class: 'card flush'}, h('h2', {class: 'pad'}, 'Input ops on the host'), table.element));
    }
    if (advice && advice.length && step && step.length) {
      const items = advice.columns[0].values.map((v) => ({said: v, element: h('li', {}, plain(v).text)}));
      const card = h('div', {}, h('h3', {}, 'What can be done'), h('ul', {}, items.map((x) => x.element)));
      theirs.push(card);
      found.then((f) => dropForeign(card, items, f));
    }
    if (theirs.length) ctx.root.append(xprofsAdvice(theirs));
    const d = diagnostics(all.find((t) => column(t, 'severity')));
    if (d) {
      ctx.root.append(d);
      has.then((any) => any && dropDenial(d));
    }
  },
};
