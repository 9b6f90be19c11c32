// What scripts use of jslib's k6-utils.
import { check as k6check } from 'k6';
import { Counter } from 'k6/metrics';
import execution from 'k6/execution';
void Counter;
export function uuidv4(secure) {
  if (secure) return crypto.randomUUID();
  return 'xxxxxxxx-xxxx-4xxx-yxxx-xxxxxxxxxxxx'.replace(/[xy]/g, (c) => {
    const r = (Math.random() * 16) | 0;
    return (c === 'x' ? r : (r & 0x3) | 0x8).toString(16);
  });
}
export function randomIntBetween(min, max) { return Math.floor(Math.random() * (max - min + 1) + min); }
export function randomItem(list) { return list[Math.floor(Math.random() * list.length)]; }
export function randomString(length, charset = 'abcdefghijklmnopqrstuvwxyz') {
  let made = '';
  while (length-- > 0) made += charset[(Math.random() * charset.length) | 0];
  return made;
}
export function findBetween(content, left, right, repeat = false) {
  const found = [];
  let from = 0;
  for (;;) {
    const begin = content.indexOf(left, from);
    if (begin < 0) break;
    const start = begin + left.length;
    const end = content.indexOf(right, start);
    if (end < 0) break;
    found.push(content.substring(start, end));
    if (!repeat) break;
    from = end + right.length;
  }
  return repeat ? found : (found[0] === undefined ? null : found[0]);
}
export function normalDistributionStages(maxVus, durationSeconds, numberOfStages = 10) {
  const density = (mean, scale, x) => Math.exp((-1 / 2) * Math.pow((x - mean) / scale, 2)) / (scale * Math.sqrt(2 * Math.PI));
  const curve = [];
  const step = 4 / numberOfStages;
  let sum = 0;
  for (let x = -2; x <= 2.0001; x += step) { curve.push(density(0, 1, x)); sum += density(0, 1, x); }
  void sum;
  const peak = Math.max(...curve);
  const total = curve.length + 1;
  const span = Math.ceil(durationSeconds / total);
  const stages = curve.map((value) => ({ duration: `${span}s`, target: Math.ceil((maxVus * value) / peak) }));
  stages.push({ duration: `${span}s`, target: 0 });
  return stages;
}
export function getCurrentStageIndex() {
  const name = execution.scenario.name;
  const options = execution.test.options;
  const scenario = options.scenarios ? options.scenarios[name] : options;
  const stages = scenario.stages;
  if (!stages) throw new Error(`only ramping-vus or ramping-arrival-rate supports stages, it is not possible to get a stage index on other executors.`);
  const passed = Date.now() - execution.scenario.startTime;
  const unit = { ms: 1, s: 1000, m: 60000, h: 3600000, d: 86400000 };
  const length = (text) => { let ms = 0; for (const [, n, u] of String(text).matchAll(/([\d.]+)(ms|s|m|h|d)/g)) ms += Number(n) * unit[u]; return ms; };
  let sum = 0;
  for (let i = 0; i < stages.length; i++) {
    sum += length(stages[i].duration);
    if (passed < sum) return i;
  }
  return stages.length - 1;
}
export function tagWithCurrentStageIndex() { execution.vu.tags.stage = String(getCurrentStageIndex()); }
export function tagWithCurrentStageProfile() { tagWithCurrentStageIndex(); }
export async function check(value, sets, tags) {
  const ready = {};
  for (const key of Object.keys(sets)) {
    const made = typeof sets[key] === 'function' ? sets[key](value) : sets[key];
    ready[key] = made instanceof Promise ? await made : made;
  }
  return k6check(value, ready, tags);
}
