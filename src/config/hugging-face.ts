// The settings of the hub from which `headrace pull` downloads models. The same variables as for Hugging Face's own
// tools are read.
import { parseHttpUrl, trimSlashes } from "../base/text/http-url.ts";
import type { Env } from "./formats.ts";
import { locationOutsideFile, type Problem } from "./problems.ts";

export interface PullSource {
  /** The hub's URL without a trailing slash. The URL of a mirror may have a path. */
  readonly endpoint: string;
  /** The access token, a secret. Undefined means that only public models can be pulled. */
  readonly token: string | undefined;
}

const defaultEndpoint = "https://huggingface.co";

export function readPullSource(env: Env): { source: PullSource; problems: Problem[] } {
  const problems: Problem[] = [];
  const { HF_ENDPOINT, HF_TOKEN } = env;
  const endpoint = HF_ENDPOINT || defaultEndpoint;
  if (parseHttpUrl(endpoint) === undefined) {
    problems.push({
      ...locationOutsideFile("HF_ENDPOINT"),
      message: "must be an http:// or https:// URL without user, query or fragment",
      fix: `Give the address of a mirror, or unset it to use ${defaultEndpoint}.`,
    });
  }
  const token = HF_TOKEN?.trim() || undefined;
  if (token !== undefined && !/^[!-~]+$/.test(token)) {
    problems.push({
      ...locationOutsideFile("HF_TOKEN"),
      message: "must be printable ASCII characters without spaces",
      fix: "Copy the token again, or unset it to fetch public models.",
    });
  }
  return { source: { endpoint: trimSlashes(endpoint), token }, problems };
}
