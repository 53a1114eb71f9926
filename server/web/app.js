// SPDX-License-Identifier: Apache-2.0
// The frame around the pages: header, tools, theme, and which page the address asks for.

import {h, announce} from './lib/dom.js';
import * as api from './lib/api.js';
import * as router from './lib/router.js';
import * as theme from './lib/theme.js';
import {problem, notes, loading} from './lib/notes.js';
import {near} from './lib/near.js';
import sessionsPage from './pages/sessions.js';
import overview from './pages/overview.js';
import ops from './pages/ops.js';
import opProfile from './pages/op_profile.js';
import hloOps from './pages/hlo_ops.js';
import roofline from './pages/roofline.js';
import kernels from './pages/kernels.js';
import memory from './pages/memory.js';
import memoryViewer from './pages/memory_viewer.js';
import graph from './pages/graph.js';
import input from './pages/input.js';
import inference from './pages/inference.js';
import trace from './pages/trace.js';
import tables from './pages/tables.js';
import server from './pages/server.js';
import captures from './pages/captures.js';
import compare from './pages/compare.js';
import sql from './pages/sql.js';
import historyPage from './pages/history.js';

// Pages of one session, in the order of the navigation.
const PAGES = [
  ['overview', overview],
  ['trace', trace],
  ['op_profile', opProfile],
  ['ops', ops],
  ['hlo_ops', hloOps],
  ['roofline', roofline],
  ['kernels', kernels],
  ['memory', memory],
  ['memory_viewer', memoryViewer],
  ['graph', graph],
  ['input', input],
  ['inference', inference],
];
// Tools that those pages show; any other that the server knows is shown by the page of tables.
const COVERED = new Set([
  'overview_page', 'trace_viewer', 'trace_viewer@', 'op_profile', 'framework_op_stats', 'kernel_stats',
  'memory_profile', 'input_pipeline_analyzer', 'graph_viewer', 'memory_viewer', 'op_stats',
  'trace_overlap', 'trace_search', 'trace_sums', 'hlo_stats', 'roofline_model', 'findings', 'time_breakdown',
  'op_list', 'hlo_modules', 'inference_profile'
]);
// Summaries of runs, of whatever format, are what comparisons show.
const isCovered = (name) => COVERED.has(name) || name.endsWith('run_summary');

// Kinds of devices of which one is needed for a page or a table to have anything.
const NEEDS = {
  kernels: ['gpu'], launches: ['gpu'], inference: ['gpu', 'tpu'], roofline: ['gpu', 'tpu'], kernel_utilization: ['tpu'], perf_counters: ['tpu'],
  utilization_viewer: ['tpu'], megascale_stats: ['tpu'], megascale_perfetto: ['tpu']
};
let deviceKinds = {session: null, kinds: new Set()};  // of the session that was drawn last

const top = document.getElementById('top');
const nav = document.getElementById('nav');
const main = document.getElementById('main');
const skip = document.getElementById('skip');
skip.addEventListener('click', () => main.focus());

let drawing = null;  // AbortController of the page on show
let shown = null;    // what that page was given, once it is there
let toolList = {session: null, tools: []};  // of the session that was drawn last

async function knownTools(session, signal) {
  try {
    const tools = (await api.tools(session, signal)).data.tools || [];
    toolList = {session, tools};
  } catch (e) {
    if (e.name === 'AbortError') throw e;
  }
  return toolList.session === session ? toolList.tools : [];
}

// Whose history a session belongs to: that of its first label, or else of its directory.
function related(session) {
  if (!session) return {};
  const cut = session.name.lastIndexOf('/');
  return session.labels?.length ? {label: session.labels[0]} : cut > 0 ? {directory: session.name.slice(0, cut)} : {};
}

// What the page Compare is to begin with, from the page of a session.
function sidesOf(at) {
  const base = at.params.get('base');
  return at.session === null ? {} : base ? {a: base, b: at.session} : {a: at.session};
}

function drawTop(at, session) {
  const items = [h('a', {class: 'brand', href: router.link(null, 'sessions'), 'aria-label': 'xplaned, all sessions'},
      h('img', {src: 'icon.svg', alt: '', width: '26', height: '26'}), h('span', {class: 'brand-name'}, 'xplaned'))];
  if (at.session !== null) {
    items.push(h('span', {class: 'crumb', 'aria-hidden': 'true'}, '/'),
        h('span', {class: 'session-name', title: at.session}, at.session));
    const hosts = session ? session.hosts.map((x) => x.name) : [];
    const chosen = at.params.getAll('host');
    if (hosts.length > 1 || chosen.length) {
      const names = [...new Set([...hosts, ...chosen])];
      const select = h('select', {
        'aria-label': 'Host',
        id: 'host-choice',
        onchange: () => router.update({host: select.value}, true),
      },
          h('option', {value: ''}, `All ${hosts.length} hosts`),
          names.map((n) => h('option', {value: n}, n)));
      select.value = chosen[0] || '';
      items.push(select);
    } else if (hosts.length === 1)
      items.push(h('span', {class: 'muted one-host'}, hosts[0]));
  }
  items.push(h('span', {class: 'grow'}),
      h('a', {class: 'quiet', href: router.link(null, 'compare', sidesOf(at))}, 'Compare'),
      h('a', {class: 'quiet', href: router.link(null, 'history', related(session))}, 'History'),
      h('a', {class: 'quiet', href: router.link(null, 'sql', {session: at.session ?? at.params.get('session')})}, 'SQL'),
      h('a', {class: 'quiet', href: router.link(null, 'captures')}, 'Capture'),
      h('a', {class: 'quiet', href: router.link(null, 'server')}, 'Server'), theme.button());
  top.replaceChildren(...items);
}

function drawNav(at, tools) {
  nav.hidden = at.session === null;
  document.body.classList.toggle('with-nav', at.session !== null);
  if (at.session === null) return;
  const host = at.params.getAll('host');
  const entry = (page, title) => h('li', {},
      h('a', {
        href: router.link(at.session, page, {host}),
        'aria-current': at.page === page ? 'page' : null,
      },
          title));
  const known = new Set(tools.map((t) => t.name));
  const pages = PAGES.filter(([, p]) => !tools.length || known.has(p.tool) || p.always);
  const tables = tools.filter((t) => !isCovered(t.name)).map((t) => [`tool:${t.name}`, t.title]);
  const lacks = (name) => (NEEDS[name.replace('tool:', '')] || []).every((kind) => !kinds.has(kind)) && name.replace('tool:', '') in NEEDS;
  const {kinds} = deviceKinds, folds = deviceKinds.session === at.session && kinds.size > 0;
  const all = [...pages.map(([name, p]) => [name, p.title]), ...tables];
  const folded = folds ? all.filter(([name]) => lacks(name)) : [];
  const has = (list) => list.filter((x) => !folded.includes(x));
  const list = (entries) => h('ul', {}, entries.map(([name, title]) => entry(name, title)));
  const few = folded.some(([name]) => name === at.page);
  nav.replaceChildren(baseChoice(at), list(has(all.slice(0, pages.length))), has(tables).length ? h('h2', {}, 'Tables') : '', list(has(tables)),
      folded.length ? h('details', {open: few}, h('summary', {}, `${folded.length} without data here`), list(folded)) : '');
}

// The session to which the pages show differences.  Names are offered once the reader goes there: there may be thousands.
function baseChoice(at) {
  const names = h('datalist', {id: 'bases'});
  const input = h('input', {
    type: 'text',
    id: 'base-choice',
    list: 'bases',
    value: at.params.get('base') || '',
    placeholder: 'Compare with …',
    title: at.params.get('base') || '',
    'aria-label': 'Base session: pages show differences to it',
    spellcheck: 'false',
    autocomplete: 'off',
    onfocus: async () => {
      if (names.childElementCount) return;
      const list = (await api.sessions().catch(() => ({data: {}}))).data.sessions || [];
      names.replaceChildren(...list.filter((s) => s.name !== at.session).map((s) => h('option', {value: s.name})));
    },
    onchange: () => router.update({base: input.value.trim()}, true),
  });
  return h('div', {class: 'base-choice'}, input, names);
}

// Folds what the session's devices cannot have, once it is known which it has.
async function foldNav(at, tools, signal) {
  if (at.session === null || deviceKinds.session === at.session || !tools.some((t) => t.name === 'time_breakdown')) return;
  try {
    const hosts = (await api.tool(at.session, 'time_breakdown', [], {}, signal)).data.hosts || [];
    deviceKinds = {session: at.session, kinds: new Set(hosts.flatMap((x) => (x.devices || []).map((d) => d.kind)))};
  } catch { /* then all stay */
    return;
  }
  if (!signal.aborted) drawNav(router.parse(), tools);
}

function choose(at) {
  if (at.session === null) return {sessions: sessionsPage, server, captures, compare, history: historyPage, sql}[at.page] || null;
  if (at.page.startsWith('tool:')) return tables;
  return (PAGES.find(([name]) => name === at.page) || [null, null])[1];
}

// Whom to ask for a tool that answers for one host at a time: the chosen host, or else PRESET, which the address and
// the choice in the head then name. A session of one host needs no choice.
function oneHost(session, chosen, preset) {
  if (chosen.length === 1 || (!chosen.length && session.hosts.length < 2)) return chosen;
  const host = chosen[0] || preset;
  router.update({host});
  document.getElementById('host-choice').value = host;
  return [host];
}

function missing(what, name, names, code = 'NOT_FOUND') {
  const best = near(name, names);
  return new api.ApiError(404, code, `There is no ${what} “${name}”${best ? `; did you mean "${best}"?` : '.'}`);
}

function noPage(at, tools) {
  const names = at.session === null ? ['sessions', 'compare', 'history', 'sql', 'captures', 'server'] :
                                      [...PAGES.map(([name]) => name), ...tools.map((t) => `tool:${t.name}`)];
  return missing('page', at.page, names, 'NO_PAGE');
}

// PARAMS with NAME in place of each GIVEN, by itself or after a colon ("op:NAME"); null without
// one.
function mended(params, given, name) {
  let found = false;
  const one = (value) => {
    if (value !== given && !value.endsWith(`:${given}`)) return value;
    found = true;
    return value.slice(0, value.length - given.length) + name;
  };
  const all = Object.fromEntries(Object.entries(params).map(([key, values]) => [key, values.map(one)]));
  return found ? all : null;
}

// Where a misspelt address was to lead to, as the error proposes it: {name, href}, or null.
function meant(at, error) {
  const [, given, name] = /(?: "([^"]*)")?; did you mean "([^"]+)"\?/.exec(error.message) || [];
  const params = Object.fromEntries([...at.params.keys()].map((key) => [key, at.params.getAll(key)]));
  if (at.session === null && given) {  // sessions, labels and metrics that a page compares
    const all = mended(params, given, name);
    return all ? {name, href: router.link(null, at.page, all)} : null;
  }
  const href = /^(There is )?no session /.test(error.message) ? router.link(name, at.page, params) :
      error.message.startsWith('There is no page ')    ? router.link(at.session, name, params) :
      error.message.startsWith('unknown tool ')        ? router.link(at.session, `tool:${name}`, params) :
      / has no host /.test(error.message)              ? router.link(at.session, at.page, {...params, host: name}) :
      error.message.startsWith('no instruction ')      ? router.link(at.session, at.page, {...params, node: name}) :
                                                         null;
  return name && href ? {name, href} : null;
}

async function draw() {
  if (drawing) drawing.abort();
  shown = null;
  const mine = drawing = new AbortController();
  const at = router.parse();
  const page = choose(at);
  const title = page ? (page === tables ? at.page.slice(5) : page.title) : 'Not found';
  document.title = at.session === null ? `${title} – xplaned` : `${title} – ${at.session} – xplaned`;
  main.replaceChildren(loading());
  let session = null, tools = [];
  drawTop(at, null);
  drawNav(at, toolList.session === at.session ? toolList.tools : []);
  try {
    if (at.session !== null) {
      const [list] = await Promise.all([
        api.sessions(mine.signal), knownTools(at.session, mine.signal).then((t) => {
          tools = t;
        })
      ]);
      session = (list.data.sessions || []).find((s) => s.name === at.session);
      if (!session) throw missing('session', at.session, (list.data.sessions || []).map((s) => s.name));
      drawTop(at, session);
      drawNav(at, tools);
    }
    if (!page) throw noPage(at, tools);
    const names = tools.map((t) => t.name);
    if (page === overview && !names.includes(overview.tool) && names.includes(session?.report)) {
      location.replace(router.link(at.session, `tool:${session.report}`, {host: at.params.getAll('host')}));
      return;
    }
    const body = h('div', {class: `page page-${at.page.replace(/[^a-z_]/g, '-')}`});
    const noteBox = h('div', {class: 'notes'});
    const given = {
      at,
      session,
      tools,
      title,
      signal: mine.signal,
      root: body,
      params: at.params,
      hosts: at.params.getAll('host'),
      base: at.params.get('base') || null,
      update: router.update,
      oneHost: (preset = session.hosts[0].name) => oneHost(session, at.params.getAll('host'), preset),
      // One tool's answer; its warnings go to the head of the page.
      load: async (tool, options, hosts) => {
        const answer =
            await api.tool(at.session, tool, hosts || at.params.getAll('host'), options, mine.signal);
        notes(noteBox, answer.warnings);
        return answer.data;
      },
      warn: (list) => notes(noteBox, list),
      meant: (error) => meant(router.parse(), error),
    };
    await page.render(given);
    if (mine.signal.aborted) return;
    shown = given;
    main.replaceChildren(noteBox, body);
    requestAnimationFrame(() => performance.mark('page-shown'));
    announce(`${title} loaded`);
    foldNav(at, tools, mine.signal);
  } catch (e) {
    if (mine.signal.aborted || e.name === 'AbortError') return;
    main.replaceChildren(problem(title, e, draw, meant(at, e)));
    announce(`${title}: ${e.message}`);
  }
}

theme.start();
window.addEventListener('hashchange', () => {
  // A page may show a change of its own address itself (readdress says whether it did).
  const at = router.parse();
  if (shown?.at.session === at.session && shown.at.page === at.page && shown.readdress?.(at, history.state)) return;
  main.scrollTop = 0;
  draw();
});
draw();
