// Checks, while a response is scanned, whether all members that clients need are present in its items, tools, `text`
// and `reasoning`.
import { bytes, isSame, openBrace, openBracket, quote } from "../../base/text/json-bytes.ts";

/** Numbers of the response members whose content is checked, in the order of the names in `answer-scan.ts`. */
const [inOutput, inTools, inText, inReasoning] = [1, 2, 3, 4];

/** Names, by their first byte. Each name has its own bit, which is 1, 2, 4 and so on in the order of the names. */
type Names = readonly (readonly { readonly name: Buffer; readonly bit: number }[] | undefined)[];

const itemNames = namesOf("id", "status", "role", "content", "summary", "type", "encrypted_content");
const [idBit, statusBit, roleBit, contentBit, summaryBit, typeBit] = [1, 2, 4, 8, 16, 32];
const [messageBit, reasoningBit, nullBit] = [256, 512, 1024];
const messageBits = idBit | statusBit | roleBit | contentBit;
const partNames = namesOf("annotations", "text", "type");
const [annotationsBit, textBit, partTypeBit, outputTextBit] = [1, 2, 4, 256];
const toolNames = namesOf("description", "parameters", "strict", "type");
const [toolBits, toolTypeBit, functionBit] = [7, 8, 256];
const textNames = namesOf("format", "verbosity");
const [formatBit, verbosityBit] = [1, 2];
const formatNames = namesOf("description", "strict", "type");
const [formatBits, formatTypeBit, schemaBit] = [3, 4, 256];
const reasoningNames = namesOf("effort", "summary");
const reasoningBits = 3;
const [messageType, reasoningType, outputTextType, functionType, schemaType] = [
  Buffer.from("message"),
  Buffer.from("reasoning"),
  Buffer.from("output_text"),
  Buffer.from("function"),
  Buffer.from("json_schema"),
];
const letterN = 0x6e;

/**
 * The bits found so far in the current item, its content part, the current tool, `text`, the format of `text`, and
 * `reasoning`.
 */
let item = 0;
let part = 0;
let tool = 0;
let text = 0;
let format = 0;
let reasoning = 0;
let hasText = false;
let hasReasoning = false;
let isLean = false;

function namesOf(...names: readonly string[]): Names {
  const byFirst = new Array<{ name: Buffer; bit: number }[] | undefined>(128).fill(undefined);
  for (const [index, name] of names.entries()) {
    const first = name.charCodeAt(0);
    byFirst[first] = [...(byFirst[first] ?? []), { name: Buffer.from(name), bit: 1 << index }];
  }
  return byFirst;
}

/** Starts the check of a new response. */
export function beginParts(): void {
  item = 0;
  part = 0;
  tool = 0;
  text = 0;
  format = 0;
  reasoning = 0;
  hasText = false;
  hasReasoning = false;
  isLean = false;
}

/** Reports whether the last scanned response had all members. */
export function areWholeParts(): boolean {
  endItem();
  endTool();
  if (hasText && (text & formatBit) === 0) isLean = true;
  if ((format & schemaBit) !== 0 && (format & formatBits) !== formatBits) isLean = true;
  if (hasReasoning && reasoning !== reasoningBits) isLean = true;
  return !isLean;
}

/**
 * Notes the beginning of a value. `depth` is the depth of the value's container, and `first` is the first byte of the
 * value.
 */
export function partBegins(member: number, depth: number, first: number): void {
  if (member === inOutput) {
    if (depth === 2) endItem();
    else if (depth === 4) endPart();
  } else if (member === inTools) {
    if (depth === 2) endTool();
  } else if (depth === 1) {
    if (member === inText) hasText = first === openBrace;
    else if (member === inReasoning) hasReasoning = first === openBrace;
  }
}

/** Notes a member of an object at this depth. The name of the member opens at `at`, and its value begins at `value`. */
export function notePart(member: number, depth: number, at: number, value: number): void {
  if (member === inOutput) {
    if (depth === 3) noteItem(at, value);
    else if (depth === 5) noteContent(at, value);
  } else if (member === inTools) {
    if (depth === 3) tool |= typedBit(toolNames, toolTypeBit, functionType, functionBit, at, value);
  } else if (member === inText) {
    if (depth === 2) noteText(at, value);
    else if (depth === 3) format |= typedBit(formatNames, formatTypeBit, schemaType, schemaBit, at, value);
  } else if (depth === 2) reasoning |= bitOf(reasoningNames, at);
}

function noteItem(at: number, value: number): void {
  const bit = bitOf(itemNames, at);
  if (bit === 0) return;
  const first = bytes[value];
  if (bit === typeBit) {
    if (isNamed(messageType, value)) item |= messageBit;
    else if (isNamed(reasoningType, value)) item |= reasoningBit;
  } else if (first === letterN) item |= nullBit;
  else if (first === (bit === contentBit || bit === summaryBit ? openBracket : quote)) item |= bit;
}

function noteContent(at: number, value: number): void {
  const bit = bitOf(partNames, at);
  const first = bytes[value];
  if (bit === partTypeBit) part |= isNamed(outputTextType, value) ? outputTextBit : 0;
  else if (first === (bit === annotationsBit ? openBracket : quote)) part |= bit;
}

function noteText(at: number, value: number): void {
  const bit = bitOf(textNames, at);
  if (bit === formatBit && bytes[value] === openBrace) text |= formatBit;
  if (bit === verbosityBit && bytes[value] === letterN) isLean = true;
}

function endItem(): void {
  endPart();
  if ((item & messageBit) !== 0 && (item & messageBits) !== messageBits) isLean = true;
  const isReasoning = (item & reasoningBit) !== 0;
  if (isReasoning && (item & (idBit | summaryBit | nullBit)) !== (idBit | summaryBit)) isLean = true;
  item = 0;
}

function endPart(): void {
  const bits = annotationsBit | textBit;
  if ((part & outputTextBit) !== 0 && (part & bits) !== bits) isLean = true;
  part = 0;
}

function endTool(): void {
  if ((tool & functionBit) !== 0 && (tool & toolBits) !== toolBits) isLean = true;
  tool = 0;
}

/**
 * Returns the bit of the name that opens at `at`. For the member `type`, returns `bitOfType` if its value is `type`,
 * and 0 for any other value.
 */
function typedBit(
  names: Names,
  typeBitOfNames: number,
  type: Buffer,
  bitOfType: number,
  at: number,
  value: number,
): number {
  const bit = bitOf(names, at);
  if (bit !== typeBitOfNames) return bit;
  return isNamed(type, value) ? bitOfType : 0;
}

function bitOf(names: Names, at: number): number {
  const candidates = names[bytes[at + 1] as number];
  if (candidates === undefined) return 0;
  for (let i = 0; i < candidates.length; i++) {
    const { name, bit } = candidates[i] as { name: Buffer; bit: number };
    if (isNamed(name, at)) return bit;
  }
  return 0;
}

/** Reports whether the string that opens at `at` is equal to this name. */
export function isNamed(name: Buffer, at: number): boolean {
  const end = at + 1 + name.length;
  return bytes[end] === quote && isSame(name, at + 1, end);
}
