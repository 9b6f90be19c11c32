// k6/execution: facts about the test, the scenario and the user.
(function (k6) {
'use strict';
const { n, modules } = k6.api;

const live = (fields) => {
  const made = {};
  for (const key of Object.keys(fields)) Object.defineProperty(made, key, { get: fields[key], enumerable: true });
  return made;
};
const outsideInit = (name) => { if (n.initializing()) throw new Error(`getting ${name} information outside of the VU context is not supported`); };
const vuTags = new Proxy({}, {
  get: (_, key) => (typeof key === 'string' ? n.tag(key) : undefined),
  set: (_, key, value) => {
    if (!['string', 'number', 'boolean'].includes(typeof value)) throw new TypeError(`invalid value for tag '${String(key)}'`);
    n.setTag(String(key), String(value));
    return true;
  },
  deleteProperty: (_, key) => { n.setTag(String(key), null); return true; },
  ownKeys: () => n.tagNames(),
  has: (_, key) => n.tag(String(key)) !== undefined,
  getOwnPropertyDescriptor: (_, key) => { const value = n.tag(String(key)); return value === undefined ? undefined : { value, writable: true, enumerable: true, configurable: true }; },
});
const metadata = {};
const fact = (name) => () => { outsideInit(name); return n.fact(name); };
const execution = {
  instance: live({
    iterationsInterrupted: () => n.fact('iterationsInterrupted'), iterationsCompleted: () => n.fact('iterationsCompleted'),
    vusActive: () => n.fact('vusActive'), vusInitialized: () => n.fact('vusInitialized'),
    currentTestRunDuration: () => n.fact('currentTestRunDuration'),
  }),
  scenario: live({
    name: fact('scenario.name'), executor: fact('scenario.executor'), startTime: fact('scenario.startTime'),
    progress: fact('scenario.progress'), iterationInInstance: fact('scenario.iteration'), iterationInTest: fact('scenario.iteration'),
  }),
  vu: live({
    iterationInInstance: fact('vu.iteration'), iterationInScenario: fact('vu.iterationInScenario'),
    idInInstance: () => n.vu(), idInTest: () => n.vu(), tags: () => vuTags,
    metrics: () => ({ tags: vuTags, metadata }),
  }),
  test: {
    abort: (message) => n.abort(message === undefined ? '' : String(message)),
    fail: (message) => n.failTest(message === undefined ? '' : String(message)),
    get options() { return JSON.parse(n.options()); },
  },
};
modules['k6/execution'] = { default: execution, instance: execution.instance, scenario: execution.scenario, vu: execution.vu, test: execution.test };
})
