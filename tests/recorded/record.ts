// `bun tests/recorded/record.ts`: `--show "chat 017"` prints the recordings whose names begin with that; `--write [format]` renews the files.
import { type FormatName, formatNames, lineOf, readLines, record, shown, writeLines } from "./recording.ts";

const [option, ...words] = process.argv.slice(2);
const wanted = words.join(" ");
const formats = formatNames.filter((format) => wanted === "" || format === wanted.split(" ")[0]);
if ((option !== "--show" && option !== "--write") || formats.length === 0) {
  console.error(`Use --show or --write, and behind it one of ${formatNames.join(", ")}, for --show with a number.`);
  process.exit(1);
}
for (const format of formats) {
  const recordings = await record(format);
  if (option === "--write") write(format, recordings);
  else for (const one of recordings) if (`${format} ${one.name}`.startsWith(wanted)) console.log(shown(format, one));
}

function write(format: FormatName, recordings: Awaited<ReturnType<typeof record>>): void {
  let before: readonly string[] = [];
  try {
    before = readLines(format);
  } catch {
    // A new format has no file yet.
  }
  const changes = recordings.filter((one) => !before.includes(lineOf(one)));
  writeLines(format, recordings);
  console.log(`${format}: ${recordings.length} requests, ${changes.length} of them recorded anew`);
}
