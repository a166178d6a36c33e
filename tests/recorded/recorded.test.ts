// Compares the answers and upstream requests of recorded requests with the files here: byte for byte, ids and times blanked.
import { expect, test } from "bun:test";
import { formatNames, lineOf, readLines, record, shown } from "./recording.ts";

const maxShown = 3;

test.each(formatNames)("answers the recorded %s requests as before", async (format) => {
  const before = new Set(readLines(format));
  const recordings = await record(format);
  const others = recordings.filter((one) => !before.has(lineOf(one)));
  if (others.length > 0) {
    const lines = others.map((one) => {
      const old = [...before].find((line) => line.endsWith(` ${one.name}`));
      return `${format}\n  before ${old ?? "not recorded"}\n  now    ${lineOf(one)}`;
    });
    throw new Error(
      `${others.length} of ${recordings.length} recorded requests are answered otherwise, or ask the model server otherwise. See one whole with: bun tests/recorded/record.ts --show "${format} ${others[0]?.name.slice(0, 3)}"; the same at an older commit shows what it was. If the change is meant: --write ${format}.\n\n${lines.join("\n")}\n\n${others
        .slice(0, maxShown)
        .map((one) => shown(format, one))
        .join("\n")}`,
    );
  }
  expect(recordings.map(lineOf)).toEqual([...before]);
});
