// jslib's k6-summary: textSummary, humanizeValue, jUnit.
const ANSI = { reset: '\u001b[0m', green: '\u001b[32m', red: '\u001b[31m', cyan: '\u001b[36m', faint: '\u001b[2m' };
const MARK_OK = '\u2713';
const MARK_BAD = '\u2717';
const width = (text) => [...text].length;
const pad = (text, size, fill = ' ') => text + fill.repeat(Math.max(0, size - width(text)));

function toFixedNoZeros(value, digits) { return parseFloat(value.toFixed(digits)).toString(); }
function truncated(value, digits) { const power = 10 ** digits; return toFixedNoZeros(Math.trunc(power * value) / power, digits); }
function bytes(value) {
  const units = ['B', 'kB', 'MB', 'GB', 'TB', 'PB', 'EB', 'ZB', 'YB'];
  if (value < 10) return value + ' B';
  const e = Math.floor(Math.log(value) / Math.log(1000));
  const size = Math.floor((value / 1000 ** e) * 10 + 0.5) / 10;
  return size.toFixed(size < 10 ? 1 : 0) + ' ' + units[e | 0];
}
const UNITS = { s: { unit: 's', size: 0.001 }, ms: { unit: 'ms', size: 1 }, us: { unit: '\u00b5s', size: 1000 } };
function span(ms) {
  if (ms === 0) return '0s';
  if (ms < 0.001) return Math.trunc(ms * 1000000) + 'ns';
  if (ms < 1) return truncated(ms * 1000, 2) + '\u00b5s';
  if (ms < 1000) return truncated(ms, 2) + 'ms';
  let text = truncated((ms % 60000) / 1000, ms > 60000 ? 0 : 2) + 's';
  let rest = Math.trunc(ms / 60000);
  if (rest < 1) return text;
  text = (rest % 60) + 'm' + text;
  rest = Math.trunc(rest / 60);
  return rest < 1 ? text : rest + 'h' + text;
}
function humanizeValue(value, metric, unit) {
  if (metric.type === 'rate') return (Math.trunc(value * 100 * 100) / 100).toFixed(2) + '%';
  switch (metric.contains) {
    case 'data': return bytes(value);
    case 'time': return UNITS[unit] ? (value * UNITS[unit].size).toFixed(2) + UNITS[unit].unit : span(value);
    default: return toFixedNoZeros(value, 6);
  }
}
function nonTrend(metric, unit) {
  const v = metric.values;
  switch (metric.type) {
    case 'counter': return [humanizeValue(v.count, metric, unit), humanizeValue(v.rate, metric, unit) + '/s'];
    case 'gauge': return [humanizeValue(v.value, metric, unit), 'min=' + humanizeValue(v.min, metric, unit), 'max=' + humanizeValue(v.max, metric, unit)];
    default: return [humanizeValue(v.rate, metric, unit), `${MARK_OK} ${v.passes}`, `${MARK_BAD} ${v.fails}`];
  }
}
function textSummary(data, options) {
  const given = Object.assign({ indent: ' ', enableColors: true }, data.options, options);
  const stats = given.summaryTrendStats;
  const unit = given.summaryTimeUnit;
  const paint = (text, color) => (given.enableColors && ANSI[color] ? ANSI[color] + text + ANSI.reset : text);
  const lines = [];
  const check = (one, indent) => {
    if (one.fails === 0) { lines.push(paint(`${indent}${MARK_OK} ${one.name}`, 'green')); return; }
    const percent = Math.floor((100 * one.passes) / (one.passes + one.fails));
    lines.push(paint(`${indent}${MARK_BAD} ${one.name}\n${indent} \u21b3  ${percent}% \u2014 ${MARK_OK} ${one.passes} / ${MARK_BAD} ${one.fails}`, 'red'));
  };
  const group = (one, indent) => {
    if (one.name !== '') { lines.push(`${indent}\u2588 ${one.name}\n`); indent += '  '; }
    for (const each of one.checks) check(each, indent);
    if (one.checks.length > 0) lines.push('');
    for (const each of one.groups) group(each, indent);
  };
  group(data.root_group, given.indent + '    ');
  const names = Object.keys(data.metrics).sort();
  const shown = {};
  const columns = {};
  let nameWidth = 0;
  const widths = stats.map(() => 0);
  const label = (name) => { const at = name.indexOf('{'); return at >= 0 ? '{ ' + name.substring(at + 1, name.length - 1) + ' }' : name; };
  for (const name of names) {
    const metric = data.metrics[name];
    const text = (name.indexOf('{') >= 0 ? '  ' : '') + label(name);
    nameWidth = Math.max(nameWidth, width(text));
    if (metric.type === 'trend') {
      shown[name] = stats.map((stat, i) => {
        const value = stat === 'count' ? String(metric.values[stat]) : humanizeValue(metric.values[stat], metric, unit);
        widths[i] = Math.max(widths[i], width(value));
        return value;
      });
    } else columns[name] = nonTrend(metric, unit);
  }
  const lefts = Math.max(0, ...Object.values(columns).map((list) => width(list[0])));
  const seconds = Math.max(0, ...Object.values(columns).map((list) => width(list[1] || '')));
  for (const name of names) {
    const metric = data.metrics[name];
    const sub = name.indexOf('{') >= 0;
    let mark = ' ';
    let color = '';
    if (metric.thresholds) {
      const bad = Object.values(metric.thresholds).some((one) => !one.ok);
      mark = bad ? MARK_BAD : MARK_OK;
      color = bad ? 'red' : 'green';
    }
    const text = (sub ? '  ' : '') + label(name);
    const dots = '.'.repeat(nameWidth - width(text) + 3);
    const value = metric.type === 'trend'
      ? stats.map((stat, i) => `${stat}=${paint(pad(shown[name][i], widths[i]), 'cyan')}`).join(' ')
      : [paint(pad(columns[name][0], lefts), 'cyan'), columns[name][1] ? paint(pad(columns[name][1], seconds), 'cyan') : '', columns[name][2] || ''].filter((one) => one !== '').join(' ');
    lines.push(`${given.indent}${paint(mark, color)} ${text}${paint(dots + ':', 'faint')} ${value}`);
  }
  return lines.join('\n');
}
function jUnit(data, options) {
  const name = (options && options.name) || 'k6 thresholds';
  const escape = (text) => String(text).replace(/[<>&'"]/g, (c) => ({ '<': '&lt;', '>': '&gt;', '&': '&amp;', "'": '&apos;', '"': '&quot;' })[c]);
  const cases = [];
  let failures = 0;
  for (const metric of Object.keys(data.metrics).sort()) {
    const thresholds = data.metrics[metric].thresholds || {};
    for (const [source, result] of Object.entries(thresholds)) {
      if (result.ok) cases.push(`<testcase name="${escape(metric)} - ${escape(source)}" />`);
      else { failures += 1; cases.push(`<testcase name="${escape(metric)} - ${escape(source)}"><failure message="failed" /></testcase>`); }
    }
  }
  return `<?xml version="1.0"?>\n<testsuites tests="${cases.length}" failures="${failures}">\n<testsuite name="${escape(name)}" tests="${cases.length}" failures="${failures}">\n${cases.join('\n')}\n</testsuite >\n</testsuites >`;
}
export { humanizeValue, textSummary, jUnit };
