// Money: added, compared and kept in whole nano-USD; a fraction of a USD is what somebody reads or writes, and is never added.
import { isTest, lineAt, type SourceFile } from "./imports.ts";

/** Names of what holds USD. A name with `nano` in it holds whole nano-USD. */
const usd = String.raw`(?:[\w$.?\]#]+\.)?(?:cost|spend|billed|usd|monthly_?[sS]pend|(?!nano|\w*Nano)\w+Usd)\b(?!\()`;
const sum = "(?:[+-]=|[+](?![+=])|-(?![-=>]))";
const nano = String.raw`(?:[\w$.?#]+\.)?(?:nanoUsd|\w*NanoUsd)\b(?!\()`;

const ways: readonly [pattern: RegExp, instead: string][] = [
  [new RegExp(String.raw`(?<![\w$.])${usd}\s*${sum}\s*[\w$("(]`, "g"), "USD are not added: add nano-USD"],
  [new RegExp(String.raw`[\w$)\]]\s*${sum}\s*${usd}`, "g"), "USD are not added: add nano-USD"],
  [
    new RegExp(String.raw`(?<!Math\.(?:round|ceil|floor)\()(?<![\w$.])${nano}\s*[*/%]`, "g"),
    "nano-USD stay whole numbers",
  ],
  [new RegExp(String.raw`[*/%]\s*${nano}`, "g"), "nano-USD stay whole numbers"],
  [/\bnanoUsdPer\w*\s*=|\bparseFloat\(/g, "USD become nano-USD and nano-USD become USD in one place"],
];

/** One line for each place outside of `rooms`, files, where money may be a fraction, or is made from one. */
export function checkMoney(files: readonly SourceFile[], rooms: readonly string[]): string[] {
  return files
    .filter((file) => !isTest(file) && !rooms.includes(file.path))
    .flatMap(({ path, text }) => {
      const code = blanked(text);
      return ways.flatMap(([pattern, rule]) =>
        [...code.matchAll(pattern)].map(
          ({ 0: found, index }) =>
            `${path}:${lineAt(code, index)}: ${found.trim()}: ${rule} (src/base/money.ts, web/api/money.ts).`,
        ),
      );
    });
}

/** Comments and texts as blanks; what stands in a template is looked at. */
function blanked(text: string): string {
  return text.replace(/\/\*[\s\S]*?\*\/|(?<!:)\/\/[^\n]*|"(?:[^"\\\n]|\\.)*"/g, (found) =>
    found.replace(/[^\n]/g, " "),
  );
}
