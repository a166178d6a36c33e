// The sections `audit` and `export` of headrace.yaml, and rules that the section `tracing` shares with them.
import * as z from "zod";
import { parseHttpUrl } from "../../base/text/http-url.ts";
import { exportedKinds } from "../../domain/exports.ts";
import { field, list, mapping, oneOf, said, trueOrFalse, whole } from "../field.ts";
import { s3Settings } from "./batch-schema.ts";

export const otlpHeaders = () =>
  field(
    z.record(
      z.string().regex(/^[\w-]{1,128}$/),
      field(z.string().regex(/^[ -~]{1,4096}$/), {
        doc: "A header.",
        must: "a name of letters, digits and hyphens, with 1 to 4096 printable ASCII characters",
        fix: "Check name and value for blanks, line breaks and other characters.",
        quiet: true,
      }),
    ),
    mapping(`Headers for the collector, such as a credential: \`\${NAME}\` takes it from a variable.`),
  );

const otlp = field(
  z.strictObject({
    endpoint: field(
      z
        .string()
        .trim()
        .refine((text) => parseHttpUrl(text) !== undefined),
      {
        doc: "Base URL of the collector. `/v1/logs` and `/v1/metrics` are appended.",
        must: "an http:// or https:// URL without user, password, query or fragment",
        fix: "Give a URL such as http://127.0.0.1:4318.",
        quiet: true,
      },
    ),
    headers: otlpHeaders().optional(),
    logs: said("Send audit events and requests as log records.", trueOrFalse()).default(true),
    metrics: said("Send the metrics of each process, the same ones as `GET /metrics`.", trueOrFalse()).default(true),
    metrics_seconds: said("Seconds between two messages with metrics.", whole([5, 3600], 60, "seconds")).default(60),
  }),
  mapping("A collector that takes OTLP over HTTP with JSON."),
);

const s3 = field(
  s3Settings.extend({
    every_seconds: said(
      "Maximum seconds that a record waits for others. Objects of busy installations are stored earlier, with 2000 records each.",
      whole([1, 3600], 60, "seconds"),
    ).default(60),
  }),
  mapping("An object store with the S3 API, for JSON lines."),
);

export const audit = field(
  z.strictObject({
    required: said(
      "Refuse an action (503) if its audit event cannot be stored. If audit events are exported, also refuse changes while a receiver fails for `max_lag_seconds`.",
      trueOrFalse(),
    ).default(false),
    max_lag_seconds: said(
      "Seconds for which a receiver of audit events may fail until changes are refused.",
      whole([30, 86_400], 300, "seconds"),
    ).default(300),
  }),
  mapping("The audit log."),
);

export const exportSection = field(
  z.strictObject({
    records: field(z.array(said("A kind of record.", oneOf(exportedKinds))).min(1), {
      ...list("Kinds of records to send: audit events, and requests with their figures.", "kinds"),
      fix: "Write audit, requests or both.",
    }).default([...exportedKinds]),
    otlp: otlp.optional(),
    s3: s3.optional(),
  }),
  mapping("Audit events, requests and metrics for receivers outside."),
);
