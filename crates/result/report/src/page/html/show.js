// Figures as text, written as the tables of this page write them.
const show = (() => {
  "use strict";
  const decimalsAt = value => Math.min(12, Math.max(0, 2 - Math.floor(Math.log10(Math.abs(value)))));
  const threeDigits = value => {
    if (value === 0) return "0";
    const rounded = Number(value.toFixed(decimalsAt(value)));
    return value.toFixed(decimalsAt(rounded));
  };
  const grouped = text => {
    const [whole, fraction] = text.split(".");
    const commas = whole.replace(/\B(?=(\d{3})+$)/g, ",");
    return fraction === undefined ? commas : `${commas}.${fraction}`;
  };
  const count = n => grouped(Math.round(n).toFixed(0));
  const long = [["m", 60, "s", 1], ["h", 3600, "m", 60], ["d", 86400, "h", 3600]];
  const duration = seconds => {
    const ns = Math.round(seconds * 1e9);
    if (ns === 0) return "0 s";
    for (const [size, name] of [[1, "ns"], [1e3, "µs"], [1e6, "ms"], [1e9, "s"]]) {
      const text = name === "ns" ? String(ns) : threeDigits(ns / size);
      if (Number(text) < (name === "s" ? 60 : 1000)) return `${text} ${name}`;
    }
    for (const [name, size, subName, subSize] of long) {
      const subs = Math.round(ns / 1e9 / subSize), per = size / subSize;
      const units = Math.floor(subs / per);
      if (name === "d" || units < (name === "m" ? 60 : 24)) {
        return `${count(units)} ${name} ${String(subs % per).padStart(2, "0")} ${subName}`;
      }
    }
    return "";
  };
  // a chosen length: "10 s" where a measured one would be "10.0 s"
  const span = seconds => duration(seconds).replace(/^(\d+)(\.\d*?)0+ /, (_, whole, rest) =>
    (rest === "." ? whole : whole + rest) + " ");
  const rate = perSecond => {
    const size = Math.abs(perSecond);
    const whole = Math.abs(perSecond - Math.round(perSecond)) <= size * 1e-9;
    const decimals = whole || size >= 10000 ? 0 : size >= 100 ? 1 : undefined;
    const number = decimals === undefined ? threeDigits(perSecond) : perSecond.toFixed(decimals);
    return `${grouped(number)}/s`;
  };
  const share = part => {
    const percent = part * 100, fromAll = Math.abs(100 - percent);
    if (percent === 0 || fromAll < 1e-9) return `${percent.toFixed(0)} %`;
    let decimals = percent >= 10 ? 1 : percent >= 1 ? 2 : 3;
    const saysToo = d => fromAll < 0.5 * 10 ** -d || percent < 0.5 * 10 ** -d;
    while (decimals < 6 && saysToo(decimals)) decimals += 1;
    return `${percent.toFixed(decimals)} %`;
  };
  const figure = value => Number.isInteger(value) ? count(value) : grouped(threeDigits(value));
  const percent = share => {
    const text = (share * 100).toFixed(6).replace(/\.?0+$/, "");
    return `p${text}`;
  };
  // of a place on the axis of nines; no finer than the place on the screen is known
  const quantile = nines => {
    const above = 10 ** -nines;
    const digits = Math.max(0, Math.ceil(nines) - 1);
    return percent(1 - Number(above.toPrecision(2 + (digits > 4 ? 0 : 1))));
  };
  const round = value => String(Math.round(value * 1e6) / 1e6);
  return {
    count, duration, span, rate, share, figure, quantile,
    // of an axis: round marks need no digits behind them
    tick: {
      time: span, rate, share: part => `${round(part * 100)} %`, count: value => grouped(round(value)),
      quantile: nines => percent(1 - 10 ** -nines),
    },
    value: { time: duration, rate, share, count: figure, quantile },
  };
})();
