// Everything that one run measured, as the JSON file has it.
import type { EngineComparison } from "./built-in-engine.ts";
import type { CoreResult } from "./core.ts";
import type { FirstChunkResult } from "./first-chunk.ts";
import type { FormatsResult } from "./formats.ts";
import type { IdleStreamsResult } from "./idle-streams.ts";
import type { MemoryResult } from "./memory.ts";
import type { ScalingResult } from "./scaling.ts";
import type { WorkersResult } from "./workers.ts";

export interface BenchResult {
  /** ISO 8601. */
  at: string;
  /** Short name of the commit, with `-dirty` where files were changed; null outside of a clone. */
  commit: string | null;
  machine: {
    cpu: string;
    cores: number;
    kernel: string;
    bun: string;
    nginx: string | null;
    /** Load average over a minute. */
    loadBefore: number;
    loadAfter: number;
  };
  rounds: number;
  windowMs: number;
  /** Whether the gateway had a processor of its own. */
  pinned: boolean;
  core: CoreResult | null;
  engine: readonly EngineComparison[] | null;
  scaling: readonly ScalingResult[];
  /** Missing in figures from before there were several. */
  formats?: FormatsResult | null;
  /** Likewise. */
  memory?: MemoryResult | null;
  firstChunk?: FirstChunkResult | null;
  workers?: WorkersResult | null;
  /** What failed, by section: it has no figures. */
  failed?: readonly string[];
  streams: IdleStreamsResult | null;
}

/** Whatever makes the figures void: errors of any measurement, and usage that the ledger has not. */
export function faults({
  core,
  engine,
  scaling,
  formats,
  memory,
  firstChunk,
  workers,
  streams,
  failed,
}: BenchResult): string[] {
  const samples = [
    ...(core?.samples ?? []),
    ...scaling.flatMap((section) => section.samples),
    ...(formats?.samples ?? []),
    ...(firstChunk?.samples ?? []),
    ...(workers?.samples ?? []),
    ...(streams?.points.map(({ request }) => request) ?? []),
  ];
  const audits = [
    ...(core ? [core.audit] : []),
    ...scaling.flatMap((section) => section.audits),
    ...(formats ? [formats.audit] : []),
    ...(memory ? [memory.audit] : []),
    ...(firstChunk ? [firstChunk.audit] : []),
    ...(workers?.audits ?? []),
    ...(streams ? [streams.audit] : []),
  ];
  return [
    ...(failed ?? []),
    ...samples.flatMap(({ scenario, target, round, errors }) =>
      Object.entries(errors).map(
        ([error, count]) => `${scenario}, ${target}, round ${round}: ${error} (${count} times)`,
      ),
    ),
    ...audits.flatMap((one) => one.faults),
    ...(streams?.faults ?? []),
    ...Object.entries(memory?.errors ?? {}).map(([error, count]) => `memory: ${error} (${count} times)`),
    ...(engine ?? []).flatMap(({ chats, errors }) =>
      Object.entries(errors).map(([error, count]) => `engine, ${chats} chats: ${error} (${count} times)`),
    ),
  ];
}
