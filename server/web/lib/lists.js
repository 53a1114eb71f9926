// SPDX-License-Identifier: Apache-2.0
// Answers that are no DataTables, as the tables that they are (cli/data_table.c has the first two, too).

// "total_ps" is in ps, which its cells or the header of an export say.
const named = (id) => {
  const [, name, end] = /^(.*?)(?:_(ps|us|bytes|percent))?$/.exec(id), words = name.replaceAll('_', ' ');
  return {id, label: words.charAt(0).toUpperCase() + words.slice(1), unit: end === 'percent' ? '%' : end};
};

const plain = (v) => (v === null || v === undefined ? '' : typeof v === 'object' ? JSON.stringify(v) : String(v));

// Objects as rows, and their members as columns, as columns() of gviz.js has them.
function tableOf(rows) {
  const ids = [...new Set(rows.flatMap(Object.keys))];
  return {
    columns: ids.map((id) => {
      const all = rows.map((r) => r[id]), some = all.filter((v) => v !== null && v !== undefined);
      const number = some.length > 0 && some.every((v) => typeof v === 'number');
      const values = number ? Float64Array.from(all, (v) => v ?? NaN) : all.map(plain);
      return {...named(id), type: number ? 'number' : 'string', values};
    }),
    length: rows.length,
  };
}

// pod_viewer: a row for each core of each step, a column for each kind of time.
function podRows(answer) {
  const kinds = (answer.stepBreakdownEvents || []).map((x) => [String(x.id), `${x.name}_us`]);
  return answer.podStatsSequence.podStatsMap.flatMap((step) => Object.entries(step.podStatsPerCore).map(([core, x]) => ({
    step: step.stepNum, core, host: x.hostName, bottleneck: x.bottleneck, duration_us: x.totalDurationUs,
    ...Object.fromEntries(kinds.map(([id, name]) => [name, x.stepBreakdownUs[id]]))
  })));
}

// kernel_utilization: for each sample of each device a row for the matrix unit and each other.
function kernelRows(devices) {
  return devices.flatMap((d) => d.kernels.flatMap((k, i) => {
    const row = (unit, share, us) => ({device: d.device_id, type: d.device_type, sample: i + 1, unit, share_percent: share, duration_us: us});
    return [row('MXU', k.mxu_utilization, k.duration_us), ...Object.entries(k.other_metrics || {}).map(([unit, v]) => row(unit, v, null))];
  }));
}

const isList = (x) => Array.isArray(x) && x.length > 0 && x.every((v) => v && typeof v === 'object' && !Array.isArray(v));

// The tables of an answer; none where it has no lists.
export function lists(answer) {
  if (!answer || typeof answer !== 'object') return [];
  if (answer.podStatsSequence) return [podRows(answer)].filter(isList).map(tableOf);
  if (isList(answer.devices) && answer.devices.every((d) => Array.isArray(d.kernels)))
    return [kernelRows(answer.devices)].filter(isList).map(tableOf);
  return Object.values(answer).filter(isList).map(tableOf);
}
