// Calls a tool with arguments from a form that is made of its schema, in the name of who looks at it.
import { NativeSelect, Stack, Switch, Textarea, TextInput } from "@mantine/core";
import { useState } from "react";
import { useChange } from "../../api/queries.ts";
import { callTool, type JsonObject, type Listed } from "../../api/tools.ts";
import { Form } from "../../parts/editing/form.tsx";
import { DrawerPart } from "../../parts/page/section.tsx";
import { SmallNote } from "../../parts/words/note.tsx";
import { type ArgumentField, argumentsOf, fieldsOf, initialOf, objectOf } from "./argument-fields.ts";
import { ToolResult } from "./tool-result.tsx";

/** All arguments as one text. */
const whole = "arguments";
/** Servers answer earlier, or the gateway ends the call. */
const longestMs = 600_000;

export function ToolTest({ tool }: { tool: Listed }) {
  const fields = fieldsOf(tool.inputSchema);
  const [typed, setTyped] = useState(() => (fields ? initialOf(fields) : { [whole]: "{}" }));
  const [problems, setProblems] = useState<Readonly<Record<string, string>>>({});
  const [endedMs, setEndedMs] = useState(0);
  const test = useChange(
    async (given: JsonObject) => {
      const startedMs = performance.now();
      const result = await callTool(tool.name, given, AbortSignal.timeout(longestMs));
      setEndedMs(performance.now() - startedMs);
      return result;
    },
    { stale: ["/v1/requests", "/v1/usage"] },
  );
  const change = (name: string, value: string) => {
    setTyped((before) => ({ ...before, [name]: value }));
    setProblems({});
  };
  const submit = () => {
    const read = fields ? argumentsOf(fields, typed) : objectOf(typed[whole] ?? "");
    if ("given" in read) test.mutate(read.given);
    else setProblems("problems" in read ? read.problems : { [whole]: read.problem });
  };
  return (
    <>
      <DrawerPart title="Test">
        <Form sending={test} action="Call the tool" failed="The call failed" submit={submit} noValidate>
          <Stack gap="sm">
            {fields?.map((field) => (
              <Argument
                key={field.name}
                field={field}
                value={typed[field.name] ?? ""}
                error={problems[field.name]}
                change={(value) => change(field.name, value)}
              />
            ))}
            {fields?.length === 0 && <SmallNote>It takes no arguments.</SmallNote>}
            {!fields && (
              <JsonField
                label="Arguments"
                value={typed[whole] ?? ""}
                error={problems[whole]}
                change={(value) => change(whole, value)}
              />
            )}
            <SmallNote>It is called in your name, counts as yours, and does what it does.</SmallNote>
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
  const { name, kind, description, isRequired, choices } = field;
  const shared = { label: name, description, error, required: isRequired };
  if (kind === "switch") {
    return (
      <Switch
        {...{ label: name, description, error }}
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
  label: string;
  description?: string | undefined;
  required?: boolean;
  value: string;
  error: string | undefined;
  change(value: string): void;
}

function JsonField({ label, description, required = false, value, error, change }: JsonFieldProps) {
  return (
    <Textarea
      {...{ label, error, required, value }}
      description={description === undefined ? "As JSON" : `${description} (as JSON)`}
      onChange={(event) => change(event.currentTarget.value)}
      autosize
      minRows={2}
      maxRows={12}
      spellCheck={false}
      styles={{ input: { fontFamily: "var(--mantine-font-family-monospace)" } }}
    />
  );
}
