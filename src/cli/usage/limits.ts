// `headrace limits`: shows the limits and quotas of a key, what is used and left, and when each resets.
import { z } from "zod";
import { type Column, command, printRows } from "../command.ts";
import { barOf, quotaWords, usedQuota } from "../keys/quota-view.ts";
import { understood } from "../login/api-request.ts";
import { serverCommand } from "../login/server-command.ts";
import { formatCount, formatTimeAndRelative, formatUsd } from "../terminal/figures.ts";
import { formatFacts, printable } from "../terminal/terminal.ts";
import { grantCommand, refuseCommand, requestCommand, requestsCommand } from "./limit-requests.ts";
import { rate, rateText } from "./rate-view.ts";

export const limitsShape = z.object({
  environment: z.string(),
  rate: z.object({ requests: rate, tokens: rate }),
  quotas: z.array(usedQuota),
});
type UsedQuota = z.infer<typeof usedQuota>;

const showCommand = serverCommand({
  name: "show",
  isDefault: true,
  summary: "show limits, quotas and what is left (the default)",
  description:
    "Show the rate limits and quotas of this key, of the key that made it and of the account: what is used, what is left, and when each resets. Needs a key with the scope chat:write.",
  options: { json: ["--json", "print what the API gives"] },
  examples: ["headrace limits", "headrace limits --json"],
  async run({ connect, request, context, terminal }) {
    const raw = await request("/limits");
    const limits = understood(limitsShape, raw, await connect(), "limits");
    const nowSeconds = Math.floor(context.nowMs() / 1000);
    const show = () => {
      const facts = [
        ["Environment", limits.environment],
        ["Requests", rateText(limits.rate.requests)],
        ["Tokens", rateText(limits.rate.tokens)],
      ] as const;
      terminal.print(formatFacts(facts, terminal.out));
      terminal.print("");
      if (limits.quotas.length === 0) return terminal.print("  No quota holds for this key.");
      printRows(terminal, limits.quotas, columnsOf(terminal.unicode, nowSeconds), ["USED", "LEFT"]);
      for (const { reason, ask, amount, used } of limits.quotas) {
        if (used >= amount && reason && ask) terminal.print(`  ${reason} is used up. Ask ${printable(ask)} for more.`);
      }
    };
    return { json: raw, show };
  },
});

export const limitsCommand = command({
  name: "limits",
  summary: "show the limits and quotas of this key, and ask for more",
  description: "Show the limits of this key, ask for more of a quota, and decide such requests.",
  examples: [
    "headrace limits",
    'headrace limits request "5 usd per day" --reason "evaluation, until Friday"',
    "headrace limits requests --open",
    "headrace limits grant lrq_… --amount 5 --for 24h",
  ],
  commands: [showCommand, requestCommand, requestsCommand, grantCommand, refuseCommand],
});

function columnsOf(unicode: boolean, nowSeconds: number): Column<UsedQuota>[] {
  return [
    ["OF", ({ owner }) => owner],
    ["QUOTA", (quota) => quotaWords([quota])],
    ["", ({ amount, used }) => barOf({ limit: amount, used }, unicode)],
    ["USED", ({ unit, used }) => figure(unit, used)],
    ["LEFT", ({ unit, amount, used, left }) => figure(unit, left ?? Math.max(0, amount - used))],
    [
      "OPENS",
      ({ resets_at: opens }) => (opens == null ? "with the next use" : formatTimeAndRelative(opens, nowSeconds)),
    ],
  ];
}

function figure(unit: string, value: number): string {
  return unit === "usd" ? formatUsd(value) : formatCount(value);
}
