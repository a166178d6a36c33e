// The part of headrace.yaml about clients of the authorization server that no account registered.
import * as z from "zod";
import { field, list, mapping, oneOf, said } from "../field.ts";
import { isHost } from "../formats.ts";

const onOrOff = ["on", "off"] as const;

export const oauth = field(
  z.strictObject({
    registration: said(
      "True if clients may register by themselves (RFC 7591), as most MCP clients do. Such a client is public, can be granted `tools:use` alone, and is deleted if nobody authorizes it within a day.",
      oneOf(onOrOff),
    ).default("on"),
    client_documents: said(
      "True if a client may identify itself by the URL of a document that describes it (Client ID Metadata Documents). The document is fetched from the public internet once a person who is signed in is asked.",
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
        "Hosts that may have such documents. Left out: any.",
        "hosts, one at least",
        "Write [claude.ai], or leave it out.",
      ),
    ).optional(),
  }),
  mapping("Clients of the authorization server that no account registered."),
);
