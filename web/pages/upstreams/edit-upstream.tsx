// Changes a model server that was added here.
import { Button, Checkbox, Group, PasswordInput, Stack, TextInput, Title } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { type FormEvent, useState } from "react";
import { call } from "../../api/client.ts";
import { useChange } from "../../api/queries.ts";
import type { UpdateUpstreamRequest, Upstream } from "../../api/types.ts";
import { changedMembers } from "../../parts/editing/changed-members.ts";
import { problemBeside, problemOf } from "../../parts/editing/field-problem.ts";
import { Failure } from "../../parts/page/failure.tsx";
import { fieldNames, MoreFields, settingsOf, settingsToWire } from "./upstream-fields.tsx";

export function EditUpstream({ upstream, done }: { upstream: Upstream; done(): void }) {
  const { name, has_api_key: hasKey } = upstream;
  const [before] = useState(() => ({ url: upstream.url ?? "", settings: settingsOf(upstream) }));
  const [url, setUrl] = useState(before.url);
  const [apiKey, setApiKey] = useState("");
  const [removesKey, setRemovesKey] = useState(false);
  const [settings, setSettings] = useState(before.settings);
  const save = useChange(
    (body: UpdateUpstreamRequest) =>
      call<Upstream>("PATCH", `/v1/admin/upstreams/${encodeURIComponent(name)}`, { body }),
    {
      stale: ["/v1/admin/upstreams", "/v1/admin/models", "/v1/model-status", "/v1/models"],
      done(changed) {
        const how = changed.state === "unreachable" ? " It cannot be reached now." : "";
        notifications.show({ message: `${name} is saved.${how}` });
        done();
      },
    },
  );
  const submit = (event: FormEvent) => {
    event.preventDefault();
    save.mutate({
      ...(url.trim() === before.url ? {} : { url: url.trim() }),
      ...(removesKey ? { api_key: null } : apiKey === "" ? {} : { api_key: apiKey }),
      ...changedMembers(settingsToWire(settings), settingsToWire(before.settings)),
    });
  };
  const problem = problemBeside(save.error, fieldNames);
  return (
    <form onSubmit={submit}>
      <Stack>
        <Title order={2} style={{ overflowWrap: "anywhere" }}>
          {name}
        </Title>
        <TextInput
          label="Address"
          description="At another host, port or scheme the API key has to be given again."
          value={url}
          onChange={(event) => setUrl(event.currentTarget.value)}
          error={problemOf(save.error, "url")}
          inputMode="url"
          spellCheck={false}
          required
        />
        <PasswordInput
          label="API key"
          description={hasKey ? "Leave it empty to keep the one that is stored." : "If it asks for one."}
          value={apiKey}
          disabled={removesKey}
          onChange={(event) => setApiKey(event.currentTarget.value)}
          error={problemOf(save.error, "api_key")}
          autoComplete="off"
          visibilityToggleButtonProps={{ "aria-label": "Show the API key" }}
        />
        {hasKey && (
          <Checkbox
            label="Remove the stored API key"
            checked={removesKey}
            onChange={(event) => setRemovesKey(event.currentTarget.checked)}
          />
        )}
        <MoreFields settings={settings} change={setSettings} error={save.error} shown />
        {problem && <Failure error={problem} />}
        <Group justify="end">
          <Button variant="default" onClick={done}>
            Cancel
          </Button>
          <Button type="submit" loading={save.isPending} disabled={settings.environments.length === 0}>
            Save
          </Button>
        </Group>
      </Stack>
    </form>
  );
}
