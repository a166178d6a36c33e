// The names of realtime events in OpenAI's current API, in its preview API, and in vLLM. Clients must spell them
// exactly.
import { ClearNames } from "../../domain/names/clear-names.ts";

export const eventNames = new ClearNames({
  known: [
    ...["type", "event_id", "session", "response", "item", "item_id", "previous_item_id", "response_id"],
    ...["content_index", "output_index", "audio_end_ms", "audio", "final", "commit"],
    ...["id", "object", "model", "prompt", "instructions", "voice", "speed", "temperature", "language"],
    ...["modalities", "output_modalities", "include", "conversation", "input", "output", "format", "rate"],
    ...["input_audio_format", "output_audio_format", "transcription", "input_audio_transcription"],
    ...["noise_reduction", "input_audio_noise_reduction", "turn_detection", "threshold", "prefix_padding_ms"],
    ...["silence_duration_ms", "idle_timeout_ms", "create_response", "interrupt_response", "eagerness"],
    ...["max_output_tokens", "max_response_output_tokens", "max_tokens", "truncation", "retention_ratio"],
    ...["token_limits", "post_instructions", "reasoning", "effort", "tracing", "workflow_name", "group_id"],
    ...["tools", "tool_choice", "name", "description", "strict", "server_label", "server_url", "connector_id"],
    ...["server_description", "authorization", "allowed_tools", "require_approval", "version", "expires_after"],
    ...["role", "status", "content", "text", "transcript", "image_url", "detail", "call_id", "arguments"],
    ...["approval_request_id", "approve", "reason", "client_secret"],
  ],
  open: ["parameters", "metadata", "headers", "variables"],
});
