// The section `oauth` of headrace.yaml: which OAuth clients are allowed although no account registered them.
import * as z from "zod";
import { field, list, mapping, oneOf, said } from "../field.ts";
import { isHost } from "../formats.ts";

const onOrOff = ["on", "off"] as const;

export const oauth = field(
  z.strictObject({
    registration: said(
      "`on`: clients may register themselves (RFC 7591), as most MCP clients do. Such a client is public, can be granted only `tools:use`, and is deleted if nobody authorizes it within a day.",
      oneOf(onOrOff),
    ).default("on"),
    client_documents: said(
      "`on`: a client may use the URL of a document that describes it as its id (Client ID Metadata Documents). The document is fetched from the public internet when a signed-in person is asked to authorize the client.",
      oneOf(onOrOff),
    ).default("on"),
    client_document_hosts: field(
      z
        .array(
          field(
            z.string().refine((text) => isHost(text) && text === text.toLowerCase()),
            { doc: "A host.", must: "a host in lower case", fix: "Give the host of the address, such as claude.ai." },
          ),
        )
        .min(1),
      list(
        "Hosts that may serve such documents. Default: any.",
        "hosts, one at least",
        "Write [claude.ai], or leave it out.",
      ),
    ).optional(),
  }),
  mapping("Clients of the authorization server that no account registered."),
);
