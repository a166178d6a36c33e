// The sections `files` and `batches` of headrace.yaml.
import * as z from "zod";
import { parseHttpUrl } from "../../base/text/http-url.ts";
import { field, mapping, printablePattern, said, whole } from "../field.ts";

const bound = (doc: string, [least, most, usual]: readonly [number, number, number], unit?: string) =>
  said(doc, whole([least, most], usual, unit)).default(usual);

const credential = (doc: string) =>
  field(z.string().max(1024).regex(printablePattern), {
    doc: `${doc} Keep it out of the file: \`\${NAME}\` takes it from a variable.`,
    must: "1 to 1024 printable ASCII characters without spaces or line breaks",
    fix: "Check the value for blanks and line breaks.",
    quiet: true,
  });

/** A bucket and its credentials. */
export const s3Settings = z.strictObject({
  bucket: field(z.string().regex(/^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/), {
    doc: "The bucket.",
    must: "the name of a bucket: 3 to 63 lower-case letters, digits, dots and hyphens",
    fix: "Give the name as the store shows it.",
  }),
  endpoint: field(
    z
      .string()
      .trim()
      .refine((text) => parseHttpUrl(text) !== undefined),
    {
      doc: "URL of the store. Default: Amazon S3 in `region`.",
      must: "a URL that begins with http:// or https:// and has no user, password, query or fragment",
      fix: "Give a URL such as https://s3.example.com.",
      quiet: true,
    },
  ).optional(),
  region: field(z.string().max(64).regex(printablePattern), {
    doc: "Region of the bucket, if the store has regions.",
    must: "1 to 64 printable ASCII characters without spaces",
    fix: "Give a region such as eu-central-1, or leave it out.",
  }).optional(),
  access_key_id: credential("Id of the access key."),
  secret_access_key: credential("The access key."),
  prefix: field(z.string().regex(/^[\w./-]{0,128}$/), {
    doc: "Prefix of the names of objects, such as `headrace/`.",
    must: "at most 128 letters, digits and . _ / -",
    fix: "Write a prefix such as headrace/, or leave it out.",
  }).default(""),
});

const s3 = field(s3Settings, mapping("An object store with the S3 API, instead of a directory."));

export const files = field(
  z.strictObject({
    directory: field(z.string().min(1), {
      doc: "Directory of the files. Replicas need one that they share. Default: `files` in the data directory.",
      must: "the path of a directory",
      fix: "Give a path, or leave it out.",
    }).optional(),
    s3: s3.optional(),
    max_bytes: bound(
      "Maximum size of one file in bytes. Larger ones get 413.",
      [1024, 1_099_511_627_776, 536_870_912],
      "bytes",
    ),
    account_bytes: bound(
      "Maximum size of all files of an account together in bytes. Each counts as at least 16384. More get 413.",
      [1024, 1_125_899_906_842_624, 10_737_418_240],
      "bytes",
    ),
    retention_days: bound("Days to keep a file, and the maximum that an upload may ask for.", [1, 3650, 30], "days"),
  }),
  mapping("Files that clients upload or that batches create."),
);

export const batches = field(
  z.strictObject({
    max_requests: bound("Maximum number of requests in one batch.", [1, 1_000_000, 50_000]),
    open_batches: bound(
      "Maximum number of batches of an account that have not ended. More get 429.",
      [1, 100_000, 100],
    ),
    concurrency: bound(
      "Maximum number of batch requests that each server process runs at once, including those that wait for a free slot.",
      [1, 10_000, 64],
    ),
    unbounded_concurrency: bound(
      "Maximum number of concurrent batch requests at an upstream that does not report its concurrency and has no `max_concurrency`. 0: none.",
      [0, 10_000, 4],
    ),
    price_factor: field(z.number().min(0).max(10), {
      doc: "Factor for the token rates of batch requests.",
      must: "a number from 0 to 10",
      fix: "Write 0.5 for half of the price, or leave it out.",
    }).default(1),
  }),
  mapping("Batches of requests. They use only slots that no other request needs."),
);
