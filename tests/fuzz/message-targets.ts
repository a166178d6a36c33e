// Messages that are parsed here and passed on: events of realtime sessions, requests over the socket of Responses, calls of tools.
import { GatewayError } from "../../src/base/errors.ts";
import { parseOnceRead } from "../../src/base/text/json-object.ts";
import { bodyMass, JsonTextError } from "../../src/base/text/json-text.ts";
import { messageNames } from "../../src/domain/tools/message-names.ts";
import { parseMessage, readMessage } from "../../src/http/api/responses/socket-message.ts";
import { readClientEvent } from "../../src/inference/realtime/events.ts";
import { asCjson, asGo, asGoVersion2, readExactly, readLeniently, type Structure } from "../support/lenient-json.ts";
import type { Target } from "./targets.ts";

const session = { model: "value", instructions: "value", max_output_tokens: "value" } as const;
const event = { type: "value", model: "value", session, response: session } as const;
const call = { jsonrpc: "value", id: "value", method: "value", params: { name: "value", uri: "value" } } as const;

/** The message as it would be sent on, or why it is refused. */
function sentOn(read: (bytes: Buffer) => unknown): (pieces: readonly Buffer[]) => unknown {
  return (pieces) => {
    try {
      return { sent: JSON.stringify(read(Buffer.concat(pieces))) };
    } catch (error) {
      if (error instanceof GatewayError || error instanceof JsonTextError || error instanceof SyntaxError) {
        return { refused: true };
      }
      throw error;
    }
  };
}

/** What is sent on is read by lenient parsers as it is read here. */
function checkFor(read: (bytes: Buffer) => unknown, structure: Structure): (bytes: Buffer) => void {
  return (bytes) => {
    const { sent } = sentOn(read)([bytes]) as { sent?: string };
    if (sent === undefined || !sent.startsWith("{")) return;
    const exact = JSON.stringify(readExactly(sent, structure));
    for (const leniency of [asGo, asGoVersion2, asCjson]) {
      const other = JSON.stringify(readLeniently(sent, structure, leniency));
      if (other !== exact) throw new Error(`${sent} is read as ${other}`);
    }
  };
}

function readCall(bytes: Buffer): unknown {
  const { value } = parseOnceRead(bytes.toString(), { depth: 64, ...bodyMass });
  messageNames.require(value);
  return value;
}

export const messageTargets: readonly Target[] = [
  {
    name: "realtime-events",
    files: ["src/inference/realtime/events.ts", "src/domain/names/clear-names.ts", "src/domain/names/field-names.ts"],
    seeds: [
      '{"type":"session.update","event_id":"e","session":{"model":"m","audio":{"input":{"transcription":{"model":"t"}}}}}',
      '{"type":"response.create","response":{"max_output_tokens":1,"metadata":{"Model":"a"},"Model":"m"}}',
      '{"Type":"a","type":"b","mod\\u0065l":"m","se\u00c5\u00bfsion":{}}',
    ],
    read: sentOn(readClientEvent),
    check: checkFor(readClientEvent, event),
    whole: true,
  },
  {
    name: "response-messages",
    files: ["src/http/api/responses/socket-message.ts", "src/base/text/json-object.ts"],
    seeds: [
      '{"type":"response.create","stream_id":"a","generate":false,"model":"m","input":"Hi","stream":false}',
      '{"type":"response.create","input":[{"a":1,"a":2}],"n":1e400}',
    ],
    read: sentOn((bytes) => {
      const { body, generates } = readMessage(parseMessage(bytes));
      return [generates, body.view.toString()];
    }),
    whole: true,
  },
  {
    name: "tool-messages",
    files: ["src/base/text/json-object.ts", "src/domain/names/clear-names.ts", "src/domain/tools/message-names.ts"],
    seeds: [
      '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{"Name":1},"_meta":{"progressToken":1}}}',
      '{"jsonrpc":"2.0","id":1,"Method":"ping","params":{"name":"a","Name":"b"}}',
    ],
    read: sentOn(readCall),
    check: checkFor(readCall, call),
    whole: true,
  },
];
