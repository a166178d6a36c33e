// Responses and Messages beside chat completions: passed to a model server that speaks them, and translated for one that does not.
import { headraceSettleMs, type Surroundings } from "./core.ts";
import { ratios, samplesOf } from "./figures.ts";
import { type Audit, audit } from "./governance.ts";
import { startHeadrace } from "./headrace.ts";
import { type Format, measure, type Sample, type Target, verify, warmUp } from "./measure.ts";
import { chatMany, type Scenario, streamFull, streamPaced, streamShort } from "./scenarios.ts";
import type { Spread } from "./statistics.ts";
import { nativeModel, renamedModel } from "./workload.ts";

export interface FormatsResult {
  targets: readonly FormatTarget[];
  samples: readonly Sample[];
  audit: Audit;
}

interface FormatTarget {
  name: string;
  title: string;
  format: Format;
  /** Whether the model server is asked in another format than the client asked in. */
  isTranslated: boolean;
}

const targets: readonly FormatTarget[] = [
  { name: "chat", title: "Chat, passed", format: "chat", isTranslated: false },
  { name: "responses", title: "Responses, passed", format: "responses", isTranslated: false },
  { name: "messages", title: "Messages, passed", format: "messages", isTranslated: false },
  { name: "responses-chat", title: "Responses, translated", format: "responses", isTranslated: true },
  { name: "messages-chat", title: "Messages, translated", format: "messages", isTranslated: true },
];

/** The scenarios and who is measured in them: the mock streams chat completions alone. */
export const formatScenarios: readonly { scenario: Scenario; targets: readonly FormatTarget[] }[] = [
  { scenario: chatMany, targets },
  ...[streamPaced, streamFull].map((scenario) => ({
    scenario,
    targets: targets.filter(({ format, isTranslated }) => format === "chat" || isTranslated),
  })),
];

export async function measureFormats({ bench, options, placement, tell }: Surroundings): Promise<FormatsResult> {
  const { mock } = bench;
  const prefix = placement.gateway;
  const { profileDir } = options;
  const started = { upstreamPort: mock.port, prefix, profileDir, source: "formats", isNative: true };
  await using headrace = await startHeadrace(started);
  const targetOf = ({ name, title, format, isTranslated }: FormatTarget): Target => ({
    ...{ name, title, format, port: headrace.port, key: headrace.key, pids: headrace.pids },
    ...{ model: isTranslated || format === "chat" ? renamedModel : nativeModel, settleMs: headraceSettleMs },
  });
  tell("formats: warming up …");
  for (const target of targets) {
    await verify(targetOf(target));
    const isStreamed = target.format === "chat" || target.isTranslated;
    const scenarios = isStreamed ? [chatMany, streamShort, streamFull] : [chatMany];
    await warmUp(bench, scenarios, targetOf(target), options.warmUpPasses);
  }
  const samples: Sample[] = [];
  for (const one of formatScenarios) {
    const onRound = (round: number) => tell(`formats: ${one.scenario.name}, round ${round} of ${options.rounds} …`);
    const measured = { scenarios: [one.scenario], targets: one.targets.map(targetOf), rounds: options.rounds, onRound };
    samples.push(...(await measure(bench, measured)));
  }
  return {
    targets: targets.map((target) => ({ ...target })),
    samples,
    audit: await audit("Formats", mock, "formats", headrace.booked),
  };
}

/** To a chat in the same round; undefined of chats themselves, and of what was not measured. */
export function formatRatio(
  { samples }: FormatsResult,
  scenario: string,
  target: string,
  figure: (sample: Sample) => number,
): Spread | undefined {
  if (target === "chat") return undefined;
  const found = ratios(samplesOf(samples, scenario, target), samplesOf(samples, scenario, "chat"), figure);
  return Number.isFinite(found.median) ? found : undefined;
}
