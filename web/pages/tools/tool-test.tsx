// Calls a tool with arguments from a form built from its schema, in the user's name.
import { NativeSelect, Stack, Switch, Textarea, TextInput } from "@mantine/core";
import { type ReactNode, useState } from "react";
import { useChange } from "../../api/queries.ts";
import { callTool, type JsonObject, type Listed } from "../../api/tools.ts";
import { Form } from "../../parts/editing/form.tsx";
import { DrawerPart } from "../../parts/page/section.tsx";
import { SmallNote } from "../../parts/words/note.tsx";
import { VisibleText } from "../../parts/words/visible-text.tsx";
import { type ArgumentField, argumentsOf, fieldsOf, initialOf, objectOf } from "./argument-fields.ts";
import { ToolResult } from "./tool-result.tsx";

/** The name of the field that holds all arguments as JSON. */
const whole = "arguments";
/** The longest wait for a call; the MCP server or the gateway ends every call earlier. */
const maxMs = 600_000;
/** A long name may contain no character at which a line could break. */
const breaking = { label: { overflowWrap: "anywhere" }, description: { overflowWrap: "anywhere" } } as const;

export function ToolTest({ tool }: { tool: Listed }) {
  const fields = fieldsOf(tool.inputSchema);
  const [typed, setTyped] = useState(() => (fields ? initialOf(fields) : { [whole]: "{}" }));
  const [problems, setProblems] = useState<ReadonlyMap<string, string>>(new Map());
  const [endedMs, setEndedMs] = useState(0);
  const test = useChange(
    async (given: JsonObject) => {
      const startedMs = performance.now();
      const result = await callTool(tool.name, given, AbortSignal.timeout(maxMs));
      setEndedMs(performance.now() - startedMs);
      return result;
    },
    { stale: ["/v1/requests", "/v1/usage"] },
  );
  const change = (name: string, value: string) => {
    setTyped((before) => ({ ...before, [name]: value }));
    setProblems(new Map());
  };
  const submit = () => {
    const read = fields ? argumentsOf(fields, typed) : objectOf(typed[whole] ?? "");
    if ("given" in read) test.mutate(read.given);
    else setProblems("problems" in read ? read.problems : new Map([[whole, read.problem]]));
  };
  return (
    <>
      <DrawerPart title="Test">
        <Form sending={test} action="Call tool" failed="The call failed" submit={submit} noValidate>
          <Stack gap="sm">
            {fields?.map((field) => (
              <Argument
                key={field.name}
                field={field}
                value={typed[field.name] ?? ""}
                error={problems.get(field.name)}
                change={(value) => change(field.name, value)}
              />
            ))}
            {fields?.length === 0 && <SmallNote>This tool takes no arguments.</SmallNote>}
            {!fields && (
              <JsonField
                label="Arguments"
                value={typed[whole] ?? ""}
                error={problems.get(whole)}
                change={(value) => change(whole, value)}
              />
            )}
            <SmallNote>This is a real call on your behalf. It counts as your usage and can change data.</SmallNote>
          </Stack>
        </Form>
      </DrawerPart>
      {test.data && <ToolResult result={test.data} durationMs={endedMs} />}
    </>
  );
}

interface ArgumentProps {
  field: ArgumentField;
  value: string;
  error: string | undefined;
  change(value: string): void;
}

function Argument({ field, value, error, change }: ArgumentProps) {
  const { kind, isRequired, choices } = field;
  const label = <VisibleText>{field.name}</VisibleText>;
  const description = field.description && <VisibleText>{field.description}</VisibleText>;
  const shared = { label, description, error, required: isRequired, styles: breaking };
  if (kind === "switch") {
    return (
      <Switch
        {...{ label, description, error, styles: breaking }}
        checked={value === "true"}
        onChange={(event) => change(String(event.currentTarget.checked))}
      />
    );
  }
  if (kind === "choice") {
    return (
      <NativeSelect
        {...shared}
        data={[{ value: "", label: "Choose" }, ...choices]}
        value={value}
        onChange={(event) => change(event.currentTarget.value)}
      />
    );
  }
  if (kind === "json") return <JsonField {...shared} value={value} change={change} />;
  return (
    <TextInput
      {...shared}
      value={value}
      onChange={(event) => change(event.currentTarget.value)}
      autoComplete="off"
      spellCheck={false}
      {...(kind === "number" ? { inputMode: "decimal" as const } : {})}
    />
  );
}

interface JsonFieldProps {
  label: ReactNode;
  description?: ReactNode;
  required?: boolean;
  value: string;
  error: string | undefined;
  change(value: string): void;
}

function JsonField({ label, description, required = false, value, error, change }: JsonFieldProps) {
  return (
    <Textarea
      {...{ label, error, required, value }}
      description={description ? <>{description} (as JSON)</> : "As JSON"}
      onChange={(event) => change(event.currentTarget.value)}
      autosize
      minRows={2}
      maxRows={12}
      spellCheck={false}
      styles={{ ...breaking, input: { fontFamily: "var(--mantine-font-family-monospace)" } }}
    />
  );
}
