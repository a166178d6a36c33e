// The unchanged body of an answer. Its callbacks report the progress to the engine.
import type { BodySink, BodySource } from "../base/bytes/body-source.ts";

export interface BodyWatcher {
  /** Called when bytes of the body arrive. */
  arrived?(): void;
  /** Called at the end of the body, or if the body is cancelled. */
  over?(): void;
  /** Called if the body breaks off. Returns the error for the code that reads the body. */
  failed(error: unknown): unknown;
}

export class WatchedBody implements BodySource {
  readonly #body: BodySource;
  readonly #watcher: BodyWatcher;

  constructor(body: BodySource, watcher: BodyWatcher) {
    this.#body = body;
    this.#watcher = watcher;
  }

  flow(sink: BodySink): void {
    this.#body.flow({
      data: (bytes) => {
        this.#watcher.arrived?.();
        sink.data(bytes);
      },
      end: () => {
        this.#watcher.over?.();
        sink.end();
      },
      fail: (error) => sink.fail(this.#watcher.failed(error)),
    });
  }

  pause(): void {
    this.#body.pause();
  }

  resume(): void {
    this.#body.resume();
  }

  cancel(): void {
    this.#watcher.over?.();
    this.#body.cancel();
  }
}
