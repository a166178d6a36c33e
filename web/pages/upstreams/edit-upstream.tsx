// Changes a model server that was added in the dashboard.
import { Checkbox, TextInput } from "@mantine/core";
import { useState } from "react";
import { call } from "../../api/client.ts";
import type { UpdateUpstreamRequest, Upstream } from "../../api/types.ts";
import { changedMembers } from "../../parts/editing/changed-members.ts";
import { problemOf } from "../../parts/editing/field-problem.ts";
import { Form } from "../../parts/editing/form.tsx";
import { useNotifiedChange } from "../../parts/editing/notified-change.ts";
import { RecordTitle } from "../../parts/page/section.tsx";
import { ApiField, ApiKeyField, fieldNames, MoreFields, settingsOf, settingsToWire } from "./upstream-fields.tsx";
import { staleWithUpstreams, upstreamPath } from "./upstream-paths.ts";

export function EditUpstream({ upstream, done }: { upstream: Upstream; done(): void }) {
  const { name, has_api_key: hasKey } = upstream;
  const [before] = useState(() => ({ url: upstream.url ?? "", settings: settingsOf(upstream) }));
  const [url, setUrl] = useState(before.url);
  const [apiKey, setApiKey] = useState("");
  const [removesKey, setRemovesKey] = useState(false);
  const [settings, setSettings] = useState(before.settings);
  const save = useNotifiedChange(
    (body: UpdateUpstreamRequest) => call<Upstream>("PATCH", upstreamPath(name), { body }),
    {
      stale: staleWithUpstreams,
      said: ({ state }) =>
        `${name} was saved.${state === "unreachable" ? " The server cannot be reached at the moment." : ""}`,
      done,
    },
  );
  const submit = () =>
    save.mutate({
      ...(url.trim() === before.url ? {} : { url: url.trim() }),
      ...(removesKey ? { api_key: null } : apiKey === "" ? {} : { api_key: apiKey }),
      ...changedMembers(settingsToWire(settings), settingsToWire(before.settings)),
    });
  return (
    <Form
      sending={save}
      fields={fieldNames}
      action="Save"
      disabled={settings.environments.length === 0}
      submit={submit}
      cancel={done}
    >
      <RecordTitle>{name}</RecordTitle>
      <TextInput
        label="Base URL"
        description="If you change the host, port or scheme, enter the API key again."
        value={url}
        onChange={(event) => setUrl(event.currentTarget.value)}
        error={problemOf(save.error, "url")}
        inputMode="url"
        spellCheck={false}
        required
      />
      <ApiKeyField
        description={hasKey ? "Leave empty to keep the stored key." : "Optional"}
        value={apiKey}
        disabled={removesKey}
        change={setApiKey}
        error={problemOf(save.error, "api_key")}
      />
      {hasKey && (
        <Checkbox
          label="Remove the stored API key"
          checked={removesKey}
          onChange={(event) => setRemovesKey(event.currentTarget.checked)}
        />
      )}
      <ApiField settings={settings} change={setSettings} error={save.error} />
      <MoreFields settings={settings} change={setSettings} error={save.error} shown />
    </Form>
  );
}
