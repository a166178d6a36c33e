// Models that `headrace pull` downloaded to this server's data directory.
import type { Capabilities } from "./capabilities.ts";
import type { MemoryNeed } from "./memory-need.ts";
import type { ModelProcessControl } from "./model-process.ts";
import type { ModelProcessState } from "./model-process-state.ts";

/** Facts that the model's files contain. */
export interface ModelFileFacts {
  architecture: string;
  /** The quantization of the weights, such as `Q4_K_M`; null if the file does not say or it is unknown. */
  quantization: string | null;
  parameters: number;
}

export interface PulledModel {
  id: string;
  /** Total bytes of the model's files on disk. */
  bytes: number;
  /** `incomplete`: the download was interrupted, or a file is missing. The model is then not served. */
  state: "ready" | "incomplete";
  /**
   * The source of the model, such as `hf:Qwen/Qwen3-0.6B-GGUF:Qwen3-0.6B-Q8_0.gguf`. Null if the download is
   * incomplete.
   */
  source: string | null;
  /** Unix seconds. Null if the download is incomplete. */
  pulledAt: number | null;
  /** Tokens. */
  context: number | null;
  capabilities: Capabilities | null;
  /** Null if the model is incomplete or the header of its file cannot be read. */
  facts: ModelFileFacts | null;
  /** An estimate of the memory that the model needs; null if the model is incomplete or its header cannot be read. */
  memory: MemoryNeed | null;
}

/** Describes how a model is used at the moment. */
export interface ModelUse {
  state: "unloaded" | "loading" | "loaded" | "failed";
  /** Number of requests that run on the model or wait for it. */
  inUse: number;
}

/** Returns a model's use, from the state of its process and the number of requests. */
export function modelUse(state: ModelProcessState, inUse: number): ModelUse {
  if (state === "loaded" || state === "failed") return { state, inUse };
  return { state: state === "off" || state === "stopping" ? "unloaded" : "loading", inUse };
}

/** A model file that another program runs in place of the built-in engine. */
export interface FileElsewhere {
  /** `model` is the model's id, `draft` that of its draft model. */
  readonly model: string;
  readonly draft: string | undefined;
  readonly process: ModelProcessControl;
}

export interface RemovedModel extends PulledModel {
  /** Number of bytes that the removal freed. */
  bytes: number;
  /**
   * Files that could not be deleted. Deletion stopped at the last file of this list. The reason is appended to that
   * file's name.
   */
  left: readonly string[];
}

/** A model that can be downloaded from the hub. */
export interface PullOffer {
  /** The id under which the model will be served. */
  id: string;
  /** Path of the model file in the repository. */
  file: string;
  quantization: string | null;
  bytes: number;
  /** `missingBytes`: bytes still to be downloaded. `roomBytes`: free bytes on the disk. */
  missingBytes: number;
  roomBytes: number;
  /** Minimum memory for a model of this size. Its context needs more. */
  minMemoryBytes: number;
}

/** A download on this server that is running or has failed. */
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
  /** Returns the running downloads, and those that failed since the start and were not started again. */
  pulls(): readonly Pull[];
  /**
   * Looks up `source` (`hf:owner/repo[:file]`). Rejects with `invalid_request` if the hub does not have it, and with
   * `service_unavailable` if the hub cannot be reached.
   */
  offer(source: string, name: string | undefined): Promise<PullOffer>;
  /**
   * Starts a download in the background and calls `ended` when it has ended. Rejects if the hub lacks the model or
   * cannot be reached, or if the disk has too little space.
   */
  pull(source: string, name: string | undefined, ended: () => void): Promise<PullOffer>;
  /**
   * Stops a running download of the model by this server, stops serving the model, and deletes its files. Returns
   * undefined if the model does not exist. If another process downloads the model, rejects with `service_unavailable`
   * and deletes nothing.
   */
  remove(id: string): Promise<RemovedModel | undefined>;
}
