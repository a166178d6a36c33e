// Models in this server's data directory that `headrace pull` downloaded.
import type { Capabilities } from "./capabilities.ts";
import type { MemoryNeed } from "./memory-need.ts";
import type { ModelProcessControl } from "./model-process.ts";
import type { ModelProcessState } from "./model-process-state.ts";

/** Facts from the files of a model. */
export interface ModelFileFacts {
  architecture: string;
  /** The quantization of the weights, such as `Q4_K_M`; null if the file does not say or it is unknown. */
  quantization: string | null;
  parameters: number;
}

export interface PulledModel {
  id: string;
  /** Bytes of all files of the model on disk. */
  bytes: number;
  /** `incomplete`: a pull was interrupted, or a file is missing; the model is not served. */
  state: "ready" | "incomplete";
  /** The source, such as `hf:Qwen/Qwen3-0.6B-GGUF:Qwen3-0.6B-Q8_0.gguf`; null if only parts are present. */
  source: string | null;
  /** Unix seconds; null if only parts are present. */
  pulledAt: number | null;
  /** Tokens. */
  context: number | null;
  capabilities: Capabilities | null;
  /** null if the model is incomplete or its header cannot be read. */
  facts: ModelFileFacts | null;
  /** An estimate of the memory that the model needs; null if the model is incomplete or its header cannot be read. */
  memory: MemoryNeed | null;
}

/** The current use of a model that this server can load. */
export interface ModelUse {
  state: "unloaded" | "loading" | "loaded" | "failed";
  /** Number of requests that run on the model or wait for it. */
  inUse: number;
}

/** Returns a model's use by the state of its process, for the code that manages model files. */
export function modelUse(state: ModelProcessState, inUse: number): ModelUse {
  if (state === "loaded" || state === "failed") return { state, inUse };
  return { state: state === "off" || state === "stopping" ? "unloaded" : "loading", inUse };
}

/** A program that runs a model file instead of the built-in engine. */
export interface FileElsewhere {
  /** Ids of the model and of its draft model. */
  readonly model: string;
  readonly draft: string | undefined;
  readonly process: ModelProcessControl;
}

export interface RemovedModel extends PulledModel {
  /** Number of bytes that the removal freed. */
  bytes: number;
  /** Files that are still on disk. Deletion stopped at the last of them, which has the reason appended. */
  left: readonly string[];
}

/** A model that can be pulled, as the hub lists it. */
export interface PullOffer {
  /** The id under which the model will be served. */
  id: string;
  /** Path of the model file in the repository. */
  file: string;
  quantization: string | null;
  bytes: number;
  /** `missingBytes`: bytes that are still to be downloaded; `roomBytes`: free bytes for them on the disk. */
  missingBytes: number;
  roomBytes: number;
  /** Memory that every model of this size needs, plus more for its context. */
  minMemoryBytes: number;
}

/** A running or failed pull of this server. */
export interface Pull {
  id: string;
  source: string;
  /** Bytes of the model that are on disk so far. */
  bytes: number;
  totalBytes: number;
  /** The reason of a failure; null while the pull runs. Starting the same pull again continues it. */
  failure: string | null;
}

export interface PulledModelStore {
  /** Lists models, ordered by id. */
  list(): Promise<PulledModel[]>;
  /** Returns running pulls, and those that failed since the start and were not started again. */
  pulls(): readonly Pull[];
  /**
   * Looks up `source` (`hf:owner/repo[:file]`). Rejects with `invalid_request` if the hub does not have it, and with
   * `service_unavailable` if the hub cannot be reached.
   */
  offer(source: string, name: string | undefined): Promise<PullOffer>;
  /**
   * Starts a pull in the background, and calls `ended` after it. Rejects like `offer`, also if the disk has no room.
   */
  pull(source: string, name: string | undefined, ended: () => void): Promise<PullOffer>;
  /**
   * Deletes the model's files, after it stops serving the model and stops this server's pull of it. Returns undefined
   * if there is no such model. Rejects with `service_unavailable`, without deleting anything, while another process
   * pulls the model.
   */
  remove(id: string): Promise<RemovedModel | undefined>;
}
