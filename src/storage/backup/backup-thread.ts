// The thread that copies and checks a database: each is one long call.
import { setPriority } from "node:os";
import { type CopyAnswer, type CopyRequest, checkDatabase, copyDatabase, digestOf } from "./backup-copy.ts";

declare const self: Worker;

self.onmessage = ({ data }: MessageEvent<CopyRequest>) => {
  const answer = (said: CopyAnswer) => self.postMessage(said);
  try {
    if (data.gently) giveWay();
    copyDatabase(data);
    answer({ state: "copied" });
    answer({ state: "done", copied: { ...checkDatabase(data.target), sha256: digestOf(data.target) } });
  } catch (error) {
    const { code, message } = error as { code?: string; message: string };
    answer({ state: "failed", code, message });
  }
};

/** Lowers the priority of this thread only, which is possible only on Linux. */
function giveWay(): void {
  if (process.platform !== "linux") return;
  try {
    setPriority(10);
  } catch {
    // The error is ignored: without the lower priority, the copy only slows down other work.
  }
}
