// SPDX-License-Identifier: Apache-2.0
// Any tool that answers with tables or lists, as tables.

import {h} from '../lib/dom.js';
import * as api from '../lib/api.js';
import * as format from '../lib/format.js';
import {about, against, answerOf, compared, scaleOf, withSigns} from '../lib/base.js';
import {DataTable} from '../lib/table.js';
import {columns, isTable} from '../lib/gviz.js';
import {lists} from '../lib/lists.js';
import {withUnits} from '../lib/units.js';
import {empty} from '../lib/notes.js';

const MOST_TEXT = 1000000;  // characters of a report; the download has all

// A list without anything in it: what the tool tells of was not there.
const isEmpty = (answer) => Boolean(answer) && Object.values(answer).some((v) => Array.isArray(v) && !v.length);

const tables = (answer) => (Array.isArray(answer) ? answer : [answer]).flatMap((t) => (isTable(t) ? [columns(t)] : lists(t)));

// The base's answer; of a tool for one host, of its first.
async function baseOf(ctx, name, options, tool) {
  if (!ctx.base || !tool?.one_host) return answerOf(ctx, name, options);
  const base = (await api.sessions(ctx.signal)).data.sessions.find((s) => s.name === ctx.base);
  return answerOf(ctx, name, options, base ? [base.hosts[0].name] : []);
}

// Rows with the same texts are the same, and differ in the first column of times or sizes.
function differences(table, base, ctx, tool, scale) {
  const keys = table.columns.filter((c) => c.type === 'string').map((c) => c.id);
  const value = withUnits(table.columns, ctx, tool).find((c) => ['ps', 'us', 'ms', 'bytes'].includes(c.unit));
  return base && keys.length && value && base.columns.some((c) => c.id === value.id) ? against(table, base, keys, value.id, scale) : table;
}

function plainTable(table, tool, caption, csv, ctx, key) {
  const cols = withSigns(withUnits(table.columns, ctx, tool)).map((c) => ({...c, bar: false, label: c.label.replace(/ \(Hex\)$/, ''), title: c.label}));
  const sort = ctx && ctx.params.get(`${key}sort`);
  return new DataTable({
    columns: cols,
    length: table.length,
    caption,
    csv,
    sort: sort ? {id: sort.replace(/^-/, ''), down: sort.startsWith('-')} : null,
    search: ctx ? ctx.params.get(`${key}q`) || '' : '',
    onState: ctx &&
        ((s) => ctx.update(
             {[`${key}sort`]: s.sort ? `${s.sort.down ? '-' : ''}${s.sort.id}` : '', [`${key}q`]: s.search})),
    empty: 'The profile has nothing for this table.',
  });
}

export default {
  title: 'Table',
  async render(ctx) {
    const name = ctx.at.page.slice(5);
    const options = {};
    for (const [k, v] of ctx.params)
      if (k.startsWith('o.')) options[k.slice(2)] = v;
    const tool = ctx.tools.find((t) => t.name === name);
    // The page shows the text of reports that also have a form for programs.
    if (tool?.options.some((o) => o.key === 'format' && o.values[0] === 'jsonl' && o.values.includes('text'))) options.format ??= 'text';
    const hosts = tool?.one_host ? ctx.oneHost() : ctx.hosts;
    let text;
    const data = await ctx.load(name, options, hosts).catch((e) => {
      if (e.code !== 'NOT_JSON') throw e;
      text = e.text;
      return null;  // nothing to make tables of
    });
    const all = tables(data);
    const [both, there] = data ? await Promise.all([compared(ctx), baseOf(ctx, name, options, tool)]) : [null, null];
    const base = there ? tables(there) : [];
    const joined = all.map((t, i) => differences(t, base[i], ctx, name, scaleOf(both)));
    const of = tool?.title ?? name;
    ctx.root.append(h('h1', {}, of), joined.some((t, i) => t !== all[i]) ? about(ctx, both) : '');
    let n = 0;
    joined.forEach((t, i) => {
      if (!t.length && all.length > 1) return;
      n++;
      const title = tool?.tables[i] || `Table ${i + 1}`;
      const table = plainTable(t, name, all.length > 1 ? `${of}: ${title}` : of,
          `${name}_${ctx.session.name.replace(/[^\w.-]+/g, '_')}${i ? `_${i + 1}` : ''}.csv`, ctx,
          i ? `${i}.` : '');
      ctx.root.append(h('section', {class: 'card flush'}, all.length > 1 ? h('h2', {class: 'pad'}, title) : '', table.element));
    });
    if (!n) {
      ctx.root.append(
          text ? h('section', {class: 'card scroll-x', role: 'region', tabindex: '0', 'aria-label': `Report ${name}`},
              h('pre', {}, format.cut(text, MOST_TEXT))) :
                 empty(isEmpty(data) ? 'Nothing of this in the profile' : 'No table of this tool', 'You can download the answer.'),
          h('p', {},
              h('a', {
                href: api.address('tool', api.toolQuery(ctx.session.name, name, hosts, options)).href,
                download: data === null ? name : `${name}.json`
              },
                  'Download the answer')));
    }
  },
};
