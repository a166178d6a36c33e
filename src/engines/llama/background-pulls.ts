// Downloads models in the background of a running server, at an operator's request.
import type { Pull, PullOffer } from "../../domain/models/pulled-model.ts";
import { diskRoom } from "./disk-space.ts";
import { minMemory } from "./gguf/estimate.ts";
import type { Hub } from "./hub-request.ts";
import { prepareModelsDirectory } from "./model-store.ts";
import { type FoundModel, fetchModel, findModel, missingBytes } from "./pull-model.ts";
import { SetupError } from "./setup-error.ts";

interface Running {
  readonly shown: { -readonly [Name in keyof Pull]: Pull[Name] };
  readonly stop: AbortController;
  ended: Promise<void>;
}

export interface BackgroundPullsOptions {
  dataDir: string;
  /** Returns the address and token of the model hub. Called for every pull. */
  hub(): Hub;
  onFailed(id: string, reason: string): void;
}

export class BackgroundPulls {
  readonly #options: BackgroundPullsOptions;
  readonly #pulls = new Map<string, Running>();

  constructor(options: BackgroundPullsOptions) {
    this.#options = options;
  }

  list(): readonly Pull[] {
    return [...this.#pulls.values()].map(({ shown }) => ({ ...shown }));
  }

  /**
   * Returns the file that a pull would download. Rejects with a SetupError, for example if the hub does not answer in
   * time.
   */
  async offer(source: string, name: string | undefined): Promise<PullOffer> {
    const { signal } = new AbortController();
    return this.#offerOf(await findModel({ source, name, hub: this.#options.hub(), signal }));
  }

  /**
   * Starts a pull. Resolves once the download has begun, and later calls `ended`. Rejects with a SetupError, for
   * example if the disk is too full.
   */
  async start(source: string, name: string | undefined, ended: () => void): Promise<PullOffer> {
    const { dataDir, hub: hubNow } = this.#options;
    const stop = new AbortController();
    const hub = hubNow();
    const request = { source, name, hub, dataDir, signal: stop.signal };
    const found = await findModel(request);
    const offer = await this.#offerOf(found);
    if (offer.missingBytes > offer.roomBytes) {
      throw new SetupError(
        `${found.model.path} has ${offer.bytes} bytes, and the disk has room for ${offer.roomBytes}. Free some space, or choose a smaller file.`,
      );
    }
    if (this.#pulls.get(found.id)?.shown.failure === null) {
      throw new SetupError(`The model ${found.id} is being pulled already.`);
    }
    const running: Running = {
      shown: { id: found.id, source, bytes: offer.bytes - offer.missingBytes, totalBytes: offer.bytes, failure: null },
      ...{ stop, ended: Promise.resolve() },
    };
    this.#pulls.set(found.id, running);
    running.ended = this.#fetch(running, request, found).finally(ended);
    return offer;
  }

  /** Stops a pull. Resolves once nothing more is written. Downloaded bytes stay on the disk. */
  async stop(id: string): Promise<void> {
    const running = this.#pulls.get(id);
    running?.stop.abort();
    await running?.ended;
    this.#pulls.delete(id);
  }

  async close(): Promise<void> {
    await Promise.all([...this.#pulls.keys()].map((id) => this.stop(id)));
  }

  async #fetch({ shown, stop }: Running, request: Parameters<typeof fetchModel>[0], found: FoundModel): Promise<void> {
    try {
      await fetchModel(request, found, {
        selected() {},
        progress(bytes) {
          shown.bytes = bytes;
        },
        retrying() {},
        inspecting() {},
      });
      this.#pulls.delete(found.id);
    } catch (error) {
      if (stop.signal.aborted) return;
      shown.failure = error instanceof SetupError ? error.message : "It failed; the server's log says why.";
      this.#options.onFailed(found.id, error instanceof Error ? error.message : String(error));
    }
  }

  async #offerOf(found: FoundModel): Promise<PullOffer> {
    const { dataDir } = this.#options;
    const { path, quantization, bytes } = found.model;
    return {
      ...{ id: found.id, file: path, quantization: quantization ?? null, bytes },
      missingBytes: await missingBytes(dataDir, found),
      roomBytes: await diskRoom(await prepareModelsDirectory(dataDir)),
      minMemoryBytes: minMemory(bytes),
    };
  }
}
