// `headrace prices`: shows vendors' prices of public models from the built-in list.
import type { PriceWire } from "../../domain/models/price-text.ts";
import { matchingPrices, priceList } from "../../prices/price-list.ts";
import { command } from "../command.ts";
import { formatCount, formatRate } from "../terminal/figures.ts";
import { CliError, formatTable } from "../terminal/terminal.ts";

/** Maximum number of printed rows. */
const maxRows = 60;

export const pricesCommand = command({
  name: "prices",
  summary: "look up what public models cost at their vendors",
  description:
    "Search the price list that comes with this version, by parts of vendor and model; without a word, list the vendors. Nothing is asked over a network. A model is given such a price by `price_of: vendor/model` in headrace.yaml, or by headrace models set --price-of.",
  arguments: [["[words...]", "parts of vendor and model, or the whole name of one"]],
  options: { json: ["--json", "print what was found as JSON"] },
  examples: ["headrace prices", "headrace prices anthropic haiku", "headrace prices openai/gpt-6.1-sol"],
  async run({ terminal }, words) {
    const { source, date, vendors } = priceList();
    const from = `Prices of ${date}, from ${source}; USD per million tokens.`;
    if (words.length === 0) {
      return {
        json: { source, date, vendors },
        show() {
          const rows = vendors.map(({ id, name, models }) => [id, name, formatCount(models)]);
          terminal.print(formatTable(["VENDOR", "NAME", "MODELS"], rows, terminal.out, [2]));
          terminal.print(`\n${from} headrace prices WORD… finds models.`);
        },
      };
    }
    const found = matchingPrices(words);
    if (found.length === 0) {
      throw new CliError(`The price list of ${date} has no model with ${words.join(" and ")} in its name.`);
    }
    return {
      json: {
        source,
        date,
        data: found.map(({ name, context, price }) => ({ name, context: context ?? null, price })),
      },
      show() {
        const [only] = found;
        if (only && found.length === 1) {
          terminal.print(terminal.out.bold(only.name));
          terminal.print(yamlOf(only.price));
          terminal.print(`\n${from} In headrace.yaml: price_of: ${only.name}`);
          return;
        }
        const usd = (rate: number | undefined) => (rate === undefined ? "" : formatRate(rate));
        const rows = found
          .slice(0, maxRows)
          .map(({ name, context, price }) => [
            name,
            context === undefined ? "" : formatCount(context),
            ...[price.input, price.cached_input, price.cache_write, price.output].map(usd),
            price.variants ? String(price.variants.length) : "",
          ]);
        const heads = ["MODEL", "CONTEXT", "INPUT", "CACHED", "WRITE", "OUTPUT", "VARIANTS"];
        terminal.print(formatTable(heads, rows, terminal.out, [1, 2, 3, 4, 5, 6]));
        const more = found.length - maxRows;
        if (more > 0) terminal.print(`… and ${formatCount(more)} more: give another word.`);
        terminal.print(`\n${from} A whole name shows all of it.`);
      },
    };
  },
});

/** Returns lines that can be pasted into headrace.yaml. */
function yamlOf({ variants = [], ...rates }: PriceWire): string {
  const lines = ["price:", ...Object.entries(rates).map(([name, rate]) => `  ${name}: ${rate}`)];
  if (variants.length > 0) lines.push("  variants:", ...variants.map((variant) => `    - ${flowOf(variant)}`));
  return lines.join("\n");
}

function flowOf(variant: object): string {
  const members = Object.entries(variant).map(
    ([name, value]) => `${name}: ${Array.isArray(value) ? JSON.stringify(value) : value}`,
  );
  return `{ ${members.join(", ")} }`;
}
