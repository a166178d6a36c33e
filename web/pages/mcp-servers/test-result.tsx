// The result of a test of an MCP server: its facts and tools, or the fault and its remedy.
import { Alert, Code, Stack, Text } from "@mantine/core";
import { AlertIcon, CheckCircleIcon } from "@primer/octicons-react";
import type { McpServerTest } from "../../api/types.ts";
import { MoreSettings } from "../../parts/editing/more-settings.tsx";
import { Some } from "../../parts/page/some.tsx";
import { counted, duration } from "../../parts/words/figures.ts";
import { SmallNote } from "../../parts/words/note.tsx";
import { VisibleText } from "../../parts/words/visible-text.tsx";
import { DefinitionState } from "./mcp-server-words.tsx";

export function TestResult({ result }: { result: McpServerTest }) {
  return result.ok ? <Worked result={result} /> : <Failed result={result} />;
}

function Worked({ result }: { result: McpServerTest }) {
  const { tools, prompts, resources, server, revision, instructions, duration_ms: ms } = result;
  const name = server?.title ?? server?.name ?? "Unnamed server";
  const found = [counted(tools.length, "tool"), counted(prompts, "prompt"), counted(resources, "resource")];
  return (
    <Alert icon={<CheckCircleIcon />} color="green" title={`It works: ${found.join(", ")}`} role="status">
      <Text size="sm" style={{ overflowWrap: "anywhere" }}>
        <bdi>
          <VisibleText>{`${name} ${server?.version ?? ""}`.trim()}</VisibleText>
        </bdi>{" "}
        answered in {duration(ms)} with protocol revision {revision ?? "unknown"}.
      </Text>
      {tools.length > 0 && (
        <MoreSettings label="Tools" shown={tools.length <= 10} hasProblem={false}>
          <Some items={tools} label="Tools found" keyOf={({ name: tool }) => tool}>
            {({ name: tool, title, description, state }) => (
              <>
                <Code className="told">
                  <VisibleText>{tool}</VisibleText>
                </Code>{" "}
                {state !== "new" && state !== "approved" && <DefinitionState state={state} />}
                <SmallNote className="told" dir="auto">
                  <VisibleText>{description ?? title ?? "No description"}</VisibleText>
                </SmallNote>
              </>
            )}
          </Some>
        </MoreSettings>
      )}
      {instructions && (
        <MoreSettings label="Instructions for models" shown={false} hasProblem={false}>
          <Text size="sm" className="told" dir="auto">
            <VisibleText>{instructions}</VisibleText>
          </Text>
        </MoreSettings>
      )}
    </Alert>
  );
}

function Failed({ result: { error, output } }: { result: McpServerTest }) {
  return (
    <Alert icon={<AlertIcon />} color="red" title="The test failed" role="alert">
      <Stack gap="xs">
        <Text size="sm">{error?.message ?? "The server gave no reason."}</Text>
        <Text size="sm">
          Check the address and the credential, and that the server is running and reachable from here.
        </Text>
        {error?.detail && <SmallNote className="told">{error.detail}</SmallNote>}
        {output.length > 0 && (
          <Code block tabIndex={0} aria-label="Last output of its process" mah="12rem" className="told">
            <VisibleText>{output.join("\n")}</VisibleText>
          </Code>
        )}
      </Stack>
    </Alert>
  );
}
