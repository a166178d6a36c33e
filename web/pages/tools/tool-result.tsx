// The result of a tool: its content parts and its structured content.
import { Alert, Code, Image, Stack, Text } from "@mantine/core";
import { AlertIcon } from "@primer/octicons-react";
import { isObject, type JsonObject, type ToolResult as Result } from "../../api/tools.ts";
import { DrawerPart } from "../../parts/page/section.tsx";
import { bytes, duration } from "../../parts/words/figures.ts";
import { SmallNote } from "../../parts/words/note.tsx";
import { text } from "./offered.ts";

/** Maximum number of characters shown of one part: a page with millions would freeze. */
const maxShown = 100_000;
/** Image types that browsers render without running scripts. */
const pictures = new Set(["image/png", "image/jpeg", "image/gif", "image/webp"]);

export function ToolResult({ result, durationMs }: { result: Result; durationMs: number }) {
  const { content, structured, isError } = result;
  return (
    <DrawerPart title="Result">
      <Stack gap="xs" role="status">
        {isError && (
          <Alert icon={<AlertIcon />} color="red">
            The tool reported a failure.
          </Alert>
        )}
        {content.map((part, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: the parts of one result do not change
          <Part key={index} part={part} />
        ))}
        {structured !== undefined && (
          <div>
            <SmallNote mb={2}>Structured result</SmallNote>
            <Shown label="Structured result">{JSON.stringify(structured, null, 2)}</Shown>
          </div>
        )}
        {content.length === 0 && structured === undefined && <Text size="sm">The result is empty.</Text>}
        <SmallNote>Answered in {duration(durationMs)}.</SmallNote>
      </Stack>
    </DrawerPart>
  );
}

function Part({ part }: { part: JsonObject }) {
  const { type, data, mimeType, uri, resource } = part;
  if (type === "text") return <Shown label="Text">{text(part["text"])}</Shown>;
  if (type === "image" && pictures.has(text(mimeType))) {
    return (
      <Image src={`data:${text(mimeType)};base64,${text(data)}`} alt="Image from the tool" fit="contain" mah={320} />
    );
  }
  if (type === "image" || type === "audio") {
    const size = bytes(Math.floor((text(data).length * 3) / 4));
    return (
      <Text size="sm">
        {type === "image" ? "Image" : "Audio"}: {text(mimeType)}, {size}
      </Text>
    );
  }
  if (type === "resource_link") return <Shown label="Link to a resource">{text(uri)}</Shown>;
  if (type === "resource" && isObject(resource) && typeof resource["text"] === "string") {
    return (
      <div>
        <SmallNote mb={2} style={{ overflowWrap: "anywhere" }}>
          {text(resource["uri"])}
        </SmallNote>
        <Shown label="Resource">{resource["text"]}</Shown>
      </div>
    );
  }
  return <Shown label="Part of the result">{JSON.stringify(part, null, 2)}</Shown>;
}

function Shown({ label, children }: { label: string; children: string }) {
  const isCut = children.length > maxShown;
  return (
    <>
      <Code
        block
        tabIndex={0}
        aria-label={label}
        mah="24rem"
        style={{ whiteSpace: "pre-wrap", overflowWrap: "anywhere" }}
      >
        {isCut ? children.slice(0, maxShown) : children}
      </Code>
      {isCut && <SmallNote>Only the beginning of {bytes(children.length)} is shown.</SmallNote>}
    </>
  );
}
