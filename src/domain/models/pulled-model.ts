// Models in the data directory of this server that `headrace pull` fetched.
import type { Capabilities } from "./capabilities.ts";
import type { MemoryNeed } from "./memory-need.ts";
import type { ModelProcessControl } from "./model-process.ts";
import type { ModelProcessState } from "./model-process-state.ts";

/** What the files of a model say of it. */
export interface ModelFileFacts {
  architecture: string;
  /** How its weights are stored, such as `Q4_K_M`; null where the file does not say, or it is not known here. */
  quantization: string | null;
  parameters: number;
}

export interface PulledModel {
  id: string;
  /** Bytes of all its files, as they are on the disk. */
  bytes: number;
  /** `incomplete`: a pull was interrupted, or a file is gone; it is not served. */
  state: "ready" | "incomplete";
  /** Its source, such as `hf:Qwen/Qwen3-0.6B-GGUF:Qwen3-0.6B-Q8_0.gguf`; null where only parts are here. */
  source: string | null;
  /** Unix seconds; null likewise. */
  pulledAt: number | null;
  /** Tokens. */
  context: number | null;
  capabilities: Capabilities | null;
  /** Null where it is incomplete, or its header cannot be read. */
  facts: ModelFileFacts | null;
  /** Likewise. An estimate. */
  memory: MemoryNeed | null;
}

/** How a model that this server can load is used at the moment. */
export interface ModelUse {
  state: "unloaded" | "loading" | "loaded" | "failed";
  /** Requests that are with it, or wait for it. */
  inUse: number;
}

/** The state of its process, as far as whoever looks after files needs it. */
export function modelUse(state: ModelProcessState, inUse: number): ModelUse {
  if (state === "loaded" || state === "failed") return { state, inUse };
  return { state: state === "off" || state === "stopping" ? "unloaded" : "loading", inUse };
}

/** A program that runs a model file in place of the built-in engine. */
export interface FileElsewhere {
  /** Ids of the model, and of the one that guesses ahead for it. */
  readonly model: string;
  readonly draft: string | undefined;
  readonly process: ModelProcessControl;
}

export interface RemovedModel extends PulledModel {
  /** Bytes that were freed. */
  bytes: number;
  /** Files that are still there, the reason behind the last one, which could not be deleted. */
  left: readonly string[];
}

/** A model that can be pulled, as the hub lists it. */
export interface PullOffer {
  /** The id under which it will be served. */
  id: string;
  /** Its path in the repository. */
  file: string;
  quantization: string | null;
  bytes: number;
  /** Bytes that are missing on the disk, and that there is room for. */
  missingBytes: number;
  roomBytes: number;
  /** Memory that any model of this size takes, and more for its context. */
  minMemoryBytes: number;
}

/** A pull that this server does, or that came to nothing. */
export interface Pull {
  id: string;
  source: string;
  /** Bytes on the disk. */
  bytes: number;
  totalBytes: number;
  /** Why it came to nothing; null while it goes on. The same pull, begun again, continues it. */
  failure: string | null;
}

export interface PulledModelStore {
  /** Models by id. */
  list(): Promise<PulledModel[]>;
  /** Pulls that go on, and those that failed since the start and were not begun again. */
  pulls(): readonly Pull[];
  /**
   * What `source` (`hf:owner/repo[:file]`) names. Rejects with `invalid_request` for what the hub has not, and with
   * `service_unavailable` where it cannot be reached.
   */
  offer(source: string, name: string | undefined): Promise<PullOffer>;
  /** Begins to pull it, in the background, and calls `ended` behind it. Rejects likewise, also where the disk has no room. */
  pull(source: string, name: string | undefined, ended: () => void): Promise<PullOffer>;
  /**
   * It is served no more from then on; a pull of it by this server is stopped. Undefined where there is none; nothing was
   * deleted where it rejects, which it does with `service_unavailable` while another process pulls the model.
   */
  remove(id: string): Promise<RemovedModel | undefined>;
}
