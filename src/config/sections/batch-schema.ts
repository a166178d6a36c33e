// The parts of headrace.yaml about files that clients upload, and about batches of requests.
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

const s3 = field(
  z.strictObject({
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
        doc: "Where the store is; left out: Amazon's, by `region`.",
        must: "a URL that begins with http:// or https:// and has no user, password, query or fragment",
        fix: "Give a URL such as https://s3.example.com.",
        quiet: true,
      },
    ).optional(),
    region: field(z.string().max(64).regex(printablePattern), {
      doc: "The region, where the store has several.",
      must: "1 to 64 printable ASCII characters without spaces",
      fix: "Give a region such as eu-central-1, or leave it out.",
    }).optional(),
    access_key_id: credential("Id of the access key."),
    secret_access_key: credential("The access key."),
    prefix: field(z.string().regex(/^[\w./-]{0,128}$/), {
      doc: "What the names of objects begin with, such as `headrace/`.",
      must: "at most 128 letters, digits and . _ / -",
      fix: "Write a prefix such as headrace/, or leave it out.",
    }).default(""),
  }),
  mapping("An object store that speaks S3's API, in place of a directory."),
);

export const files = field(
  z.strictObject({
    directory: field(z.string().min(1), {
      doc: "Directory of the files; one that all replicas have, where there are several. Left out: `files` in the data directory.",
      must: "the path of a directory",
      fix: "Give a path, or leave it out.",
    }).optional(),
    s3: s3.optional(),
    max_bytes: bound("Most bytes of one file; above it: 413.", [1024, 1_099_511_627_776, 536_870_912], "bytes"),
    account_bytes: bound(
      "Most bytes of all files of an account together; above it: 413.",
      [1024, 1_125_899_906_842_624, 10_737_418_240],
      "bytes",
    ),
    retention_days: bound(
      "How long a file is kept that does not say so itself, and the longest that one may say.",
      [1, 3650, 30],
      "days",
    ),
  }),
  mapping("Files that clients upload, and that batches make."),
);

export const batches = field(
  z.strictObject({
    max_requests: bound("Most requests of one batch.", [1, 1_000_000, 50_000]),
    open_batches: bound("Most batches of an account that have not ended; above it: 429.", [1, 100_000, 100]),
    concurrency: bound(
      "Most requests of batches that each server process has under way at the same time, those that wait for an idle place included.",
      [1, 10_000, 64],
    ),
    unbounded_concurrency: bound(
      "Most requests of batches at once at a server that does not say how many it takes, and has no `max_concurrency`. 0: none.",
      [0, 10_000, 4],
    ),
    price_factor: field(z.number().min(0).max(10), {
      doc: "What the rates for tokens are multiplied with for requests of batches.",
      must: "a number from 0 to 10",
      fix: "Write 0.5 for half of the price, or leave it out.",
    }).default(1),
  }),
  mapping("Batches of requests, which take only places that nobody else wants."),
);
