// The view of a tool: the server's description of the tool, the parameters and a test call.
import { Group, Stack, Text } from "@mantine/core";
import { isCut, isObject, type Listed, ownName, serverOf } from "../../api/tools.ts";
import { MoreSettings } from "../../parts/editing/more-settings.tsx";
import { PlainLink } from "../../parts/page/links.tsx";
import { DrawerPart, RecordTitle } from "../../parts/page/section.tsx";
import { CopyAction, CopyBlock } from "../../parts/secrets/copy.tsx";
import { Note } from "../../parts/words/note.tsx";
import { Tag } from "../../parts/words/tag.tsx";
import { VisibleText } from "../../parts/words/visible-text.tsx";
import { text } from "./offered.ts";
import { ToolTest } from "./tool-test.tsx";

export function ToolView({ tool }: { tool: Listed }) {
  const { name, title, description, inputSchema, outputSchema, annotations } = tool;
  return (
    <Stack gap="lg">
      <div>
        <Group gap={4} wrap="nowrap">
          <RecordTitle>{ownName(name)}</RecordTitle>
          <CopyAction value={name} label={`Copy the name ${name}`} />
        </Group>
        <Note style={{ overflowWrap: "anywhere" }}>
          {text(title) !== "" && (
            <>
              <bdi>
                <VisibleText>{text(title)}</VisibleText>
              </bdi>
              ,{" "}
            </>
          )}
          from {serverOf(name)}; name for clients: {name}
        </Note>
      </div>
      <Hints annotations={annotations} />
      <DrawerPart title="Description">
        <Text size="sm" className="told" dir="auto">
          <VisibleText>{text(description) || "No description"}</VisibleText>
        </Text>
      </DrawerPart>
      <MoreSettings label="Schemas" shown={false} hasProblem={false}>
        <CopyBlock value={JSON.stringify(inputSchema ?? {}, null, 2)} label="Copy the input schema" wrap />
        {outputSchema !== undefined && (
          <CopyBlock value={JSON.stringify(outputSchema, null, 2)} label="Copy the output schema" wrap />
        )}
      </MoreSettings>
      <ToolTest tool={tool} />
      {!isCut(name) && (
        <PlainLink href={`/requests?model=${encodeURIComponent(`${serverOf(name)}/${ownName(name)}`)}`}>
          Calls in Logs
        </PlainLink>
      )}
    </Stack>
  );
}

/** Shows the hints about a tool's behavior. They are claims of the MCP server, and no check depends on them. */
export function Hints({ annotations }: Pick<Listed, "annotations">) {
  const hints = hintsOf(annotations);
  if (hints.length === 0) return null;
  return (
    <Group gap={6}>
      {hints.map((hint) => (
        <Tag key={hint}>{hint}</Tag>
      ))}
    </Group>
  );
}

function hintsOf(annotations: unknown): string[] {
  if (!isObject(annotations)) return [];
  const { readOnlyHint, destructiveHint, openWorldHint } = annotations;
  return [
    ...(readOnlyHint === true ? ["Read-only"] : []),
    ...(readOnlyHint !== true && destructiveHint === true ? ["May be destructive"] : []),
    ...(openWorldHint === true ? ["Accesses external systems"] : []),
  ];
}
