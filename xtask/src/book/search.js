// Finds sections that contain every word of the query; words in a title count most.
const input = document.getElementById("search");
const results = document.getElementById("results");

function score(section, words) {
  const title = section[1].toLowerCase();
  const text = section[2].toLowerCase();
  let sum = 0;
  for (const word of words) {
    const inTitle = title.includes(word);
    const at = text.indexOf(word);
    if (!inTitle && at < 0) return 0;
    sum += (inTitle ? 10 : 0) + (at < 0 ? 0 : 1);
  }
  return sum;
}

function snippet(text, word) {
  const at = Math.max(0, text.toLowerCase().indexOf(word) - 40);
  return (at > 0 ? "… " : "") + text.slice(at, at + 120) + " …";
}

input.addEventListener("input", () => {
  const words = input.value.toLowerCase().split(/\s+/).filter((word) => word.length > 1);
  results.replaceChildren();
  results.hidden = words.length === 0;
  if (words.length === 0) return;
  const found = SECTIONS.map((section) => [score(section, words), section])
    .filter(([points]) => points > 0)
    .sort((a, b) => b[0] - a[0])
    .slice(0, 20);
  for (const [, [to, title, text]] of found) {
    const link = document.createElement("a");
    link.href = to;
    link.textContent = title;
    const small = document.createElement("small");
    small.textContent = snippet(text, words[0]);
    link.append(small);
    results.append(link);
  }
  if (found.length === 0) results.textContent = "No section contains all of these words.";
});
