// SPDX-License-Identifier: Apache-2.0
// SQL: a statement over profiles and the rows that the daemon keeps, its result as a table and as a chart.  The address
// has the statement, so that it can be shared.

import {h, announce} from '../lib/dom.js';
import * as api from '../lib/api.js';
import * as format from '../lib/format.js';
import * as router from '../lib/router.js';
import {stacked} from '../lib/chart.js';
import {complete} from '../lib/complete.js';
import {DataTable} from '../lib/table.js';
import {refusal} from '../lib/notes.js';
import {tableState} from '../lib/detail.js';
import {withUnits} from '../lib/units.js';

const MOST_BARS = 200;

// What can be queried (docs/sql.md, docs/schema.md); the daemon says which columns each has.
export const TABLES = {
  events: 'events of profiles',
  stats: 'statistics of events',
  lines: 'threads and streams',
  planes: 'devices and hosts of profiles',
  ops: 'ops of all sessions',
  ops_with_idle: 'ops, and idle time',
  hlo_instructions: 'instructions of programs',
  kernels: 'GPU kernels',
  steps: 'steps of each core',
  memory: 'allocators',
  run_metrics: 'step time and other metrics of sessions',
  session_metrics: 'those, and totals of rows',
  label_history: 'metrics of labelled sessions over time',
  label_changes: 'where their level changes',
  schedule_history: 'metrics of sessions of schedules',
  schedule_changes: 'where their level changes',
  sessions: 'sessions',
  hosts: 'hosts of sessions',
  labels: 'labels of sessions'
};
const WORDS = ['SELECT', 'FROM', 'WHERE', 'GROUP BY', 'ORDER BY', 'LIMIT', 'JOIN', 'USING', 'COUNT', 'SUM', 'AVG', 'MEDIAN', 'REGEXP', 'DESC', 'HAVING', 'DISTINCT'];

// [title, statement(condition)]: the condition names the chosen session, or is always true.
const EXAMPLES = [
  ['Ops that take most time', (where) => `SELECT name, category, sum(occurrences) AS times, sum(self_time_ps) AS self_time_ps\n  FROM ops WHERE ${where} AND on_device\n GROUP BY name, category ORDER BY self_time_ps DESC LIMIT 20`],
  ['Time of each step', (where) => `SELECT step_num, name, max(duration_ps) AS slowest_core_ps, max(input_ps) AS input_ps\n  FROM steps WHERE ${where}\n GROUP BY step_num, name ORDER BY step_num LIMIT 200`],
  ['Kernels of GPUs', (where) => `SELECT name, sum(occurrences) AS launches, sum(total_ns) * 1000 AS total_ps\n  FROM kernels WHERE ${where}\n GROUP BY name ORDER BY total_ps DESC LIMIT 20`],
  ['Events by name', (where) => `SELECT plane, name, count(*) AS times, sum(duration_ps) AS total_ps\n  FROM events WHERE ${where}\n GROUP BY plane, name ORDER BY total_ps DESC LIMIT 50`],
  ['Rates of instructions', (where) => `SELECT module, name, opcode, self_time_ps, gflops_per_s, gib_per_s\n  FROM hlo_instructions WHERE ${where} AND self_time_ps > 0\n ORDER BY self_time_ps DESC LIMIT 50`],
  ['Peaks of memory', (where) => `SELECT session, host, name, peak_bytes, capacity_bytes\n  FROM memory WHERE ${where}\n ORDER BY peak_bytes DESC LIMIT 50`],
  ['Metrics of a session', (where) => `SELECT session, metric, value, unit\n  FROM run_metrics WHERE ${where}\n ORDER BY session, metric LIMIT 200`],
];

const known = new Map();  // table -> promise of its columns, or null where the daemon lacks it

function columnsOf(table) {
  if (!known.has(table))
    known.set(table, api.get(api.address('sql', [['q', `SELECT * FROM ${table} LIMIT 0`]])).then((x) => x.data.columns, () => (known.delete(table), null)));
  return known.get(table);
}

const quoted = (text) => `'${text.replaceAll('\'', '\'\'')}'`;
const mentioned = (text) => Object.keys(TABLES).filter((name) => new RegExp(`\\b${name}\\b`, 'i').test(text));

// What may continue TEXT: tables, the columns of those that it mentions, words of SQL.
async function namesFor(text) {
  const tables = mentioned(text), columns = await Promise.all(tables.map(columnsOf)), out = new Map();
  columns.forEach((list, i) => (list || []).forEach((name) => out.set(name, {name, what: `column of ${tables[i]}`})));
  for (const [name, what] of Object.entries(TABLES)) out.set(name, {name, what});
  for (const name of WORDS) out.set(name, {name, what: ''});
  return [...out.values()];
}

// ---- the result ----

// Cells as columns; a column of numbers alone is one of numbers, and says its unit at the end of its name.
export function resultTable({columns, rows}) {
  const made = columns.map((label, c) => {
    const some = rows.map((r) => r[c]).filter((v) => v !== null), number = some.length > 0 && some.every((v) => typeof v === 'number');
    const unit = number && /_(ps|us|ms|bytes|percent)$/.exec(label)?.[1];
    return {
      id: String(c),
      label,
      type: number ? 'number' : 'string',
      unit: unit === 'percent' ? '%' : unit || undefined,
      values: number ? Float64Array.from(rows, (r) => r[c] ?? NaN) : rows.map((r) => (r[c] === null ? '' : String(r[c])))
    };
  });
  return withUnits(made, null, '').map((c) => ({...c, label: columns[Number(c.id)]}));
}

function chart(ctx, columns, n) {
  const numbers = columns.filter((c) => c.type === 'number' && c.values.some((v) => v > 0) && !c.values.some((v) => v < 0));
  if (!numbers.length || n < 2) return '';
  const place = h('div', {}), names = columns.find((c) => c.type === 'string') || columns[0], bars = Math.min(n, MOST_BARS);
  const select = h('select', {
    id: 'chart-of',
    onchange: () => {
      ctx.update({chart: select.value});
      draw();
    }
  },
      h('option', {value: ''}, 'none'), numbers.map((c) => h('option', {value: c.label}, c.label)));
  const draw = () => {
    const c = numbers.find((x) => x.label === select.value);
    place.replaceChildren(...(c ? [
      stacked({
        label: `${c.label} of ${format.count(bars)} rows${bars < n ? `, the first of ${format.count(n)}` : ''}`,
        names: Array.from({length: bars}, (_, i) => (names.type === 'string' ? names.values[i] : format.number(names.values[i]))),
        series: [{label: c.label, color: 0, values: Float64Array.from(c.values.subarray(0, bars), (v) => v || 0)}],
        format: c.format || format.number
      })
    ] : []));
  };
  const wanted = ctx.params.get('chart');
  select.value = numbers.some((c) => c.label === wanted) ? wanted : '';
  draw();
  return h('section', {class: 'card', 'aria-label': 'Chart'}, h('label', {class: 'check'}, 'Chart of ', select), place);
}

function result(ctx, data) {
  const columns = resultTable(data);
  const table = new DataTable({
    columns,
    length: data.rows.length,
    caption: 'Result',
    csv: 'statement.csv',
    ...tableState(ctx, null),
    search: ctx.params.get('find') || '',
    onState: (s) => ctx.update({sort: s.sort ? `${s.sort.down ? '-' : ''}${s.sort.id}` : '', find: s.search}),
    empty: 'The statement has no rows.'
  });
  return [
    data.cut ? h('p', {class: 'note'}, h('strong', {}, 'There are more rows. '), 'Add LIMIT, or aggregate in the statement.') : '',
    chart(ctx, columns, data.rows.length), h('section', {class: 'card flush'}, table.element)
  ];
}

// ---- the page ----

function tables(insert) {
  return h('details', {class: 'card tables'}, h('summary', {}, 'Tables and columns'), h('ul', {}, Object.entries(TABLES).map(([name, what]) => {
    const columns = h('p', {class: 'muted'}, 'Loading …');
    const entry = h('details', {}, h('summary', {}, h('code', {}, name), ` ${what}`), columns);
    entry.addEventListener('toggle', async () => {
      const list = entry.open ? await columnsOf(name) : null;
      if (list)
        columns.replaceChildren(...list.flatMap((c, i) => [i ? ', ' : '', h('button', {type: 'button', class: 'link', onclick: () => insert(c)}, c)]));
      else if (entry.open)
        columns.textContent = 'This server does not have it.';
    });
    return h('li', {}, entry);
  })));
}

// Selects what an error points at: it names a character of the statement.
function pointAt(text, message) {
  const at = Number(/\bcharacter (\d+)/.exec(message)?.[1]) - 1;
  if (!(at >= 0) || at > text.value.length) return;
  text.focus();
  text.setSelectionRange(at, at + (/^\w+/.exec(text.value.slice(at))?.[0].length || 1));
}

export default {
  title: 'SQL',
  async render(ctx) {
    const sessions = (await api.sessions(ctx.signal)).data.sessions || [];
    const session = h('input', {type: 'text', id: 'sql-session', list: 'sql-sessions', value: ctx.params.get('session') || '',
      placeholder: 'all sessions', spellcheck: 'false', autocomplete: 'off', size: '30', onchange: () => ctx.update({session: session.value.trim()})});
    const text = h('textarea', {id: 'statement', 'aria-label': 'Statement', rows: 6, spellcheck: 'false', autocomplete: 'off'});
    text.value = ctx.params.get('q') || '';
    const example = h('select', {
      id: 'example',
      onchange: () => {
        const [, make] = EXAMPLES[Number(example.value)];
        text.value = make(session.value.trim() ? `session = ${quoted(session.value.trim())}` : 'true');
        example.value = '';
        text.focus();
      }
    },
        h('option', {value: ''}, 'Choose …'), EXAMPLES.map(([title], i) => h('option', {value: String(i)}, title)));
    const insert = (name) => {
      text.setRangeText(name, text.selectionStart, text.selectionEnd, 'end');
      text.focus();
    };
    const said = h('p', {class: 'muted', role: 'status'}), place = h('div', {});
    let running = null;
    const button = h('button', {type: 'submit'}, 'Run');
    const run = async () => {
      if (running) {
        running.abort();
        return;
      }
      const statement = text.value.trim(), mine = running = new AbortController();
      if (!statement) {
        running = null;
        return;
      }
      ctx.signal.addEventListener('abort', () => mine.abort());
      ctx.update({q: statement, session: session.value.trim()});
      button.textContent = 'Stop';
      said.textContent = 'Running …';
      const began = performance.now();
      try {
        const {data} = await api.get(api.address('sql', [['q', statement], ...(session.value.trim() ? [['session', session.value.trim()]] : [])]), mine.signal);
        place.replaceChildren(...result(ctx, data).filter(Boolean));
        const n = data.rows.length;
        announce(said.textContent = `${format.count(n)} row${n === 1 ? '' : 's'} in ${format.ms(performance.now() - began)}`);
      } catch (e) {
        said.textContent = e.name === 'AbortError' ? 'Stopped.' : '';
        if (e.name !== 'AbortError') {
          place.replaceChildren(refusal(e, ctx.meant(e)));
          pointAt(text, e.message);
        }
      }
      running = null;
      button.textContent = 'Run';
    };
    text.addEventListener('keydown', (e) => {
      if (e.key !== 'Enter' || !(e.ctrlKey || e.metaKey)) return;
      e.preventDefault();
      run();
    });
    const copy = h('button', {
      type: 'button',
      onclick: async () => {
        ctx.update({q: text.value.trim(), session: session.value.trim()});
        const copied = await navigator.clipboard?.writeText(location.href).then(() => true, () => false);
        announce(said.textContent = copied ? 'The link to this statement is copied' : 'The address of this page is the link');
      }
    },
        'Link');
    const submit = (e) => {
      e.preventDefault();
      run();
    };
    const names = complete(text, () => namesFor(text.value));
    ctx.root.append(h('h1', {}, 'SQL'),
        h('form', {class: 'card sql', onsubmit: submit}, h('div', {class: 'bar'}, h('label', {class: 'check'}, 'Profiles of ', session),
            h('datalist', {id: 'sql-sessions'}, sessions.map((s) => h('option', {value: s.name}))), h('label', {class: 'check'}, 'Example ', example), h('span', {class: 'grow'}), copy, button),
            h('div', {class: 'editor'}, text, names),
            h('div', {class: 'bar'}, said, h('span', {class: 'grow'}),
                h('span', {class: 'muted small'}, 'Ctrl + Enter runs the statement, Ctrl + Space completes names'))),
        tables(insert), place);
    if (text.value) run();
  },
};
