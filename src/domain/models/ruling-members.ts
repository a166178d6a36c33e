// Members of requests that would control the model server and not the answer. They are refused unless an operator
// allows them.

/**
 * Names of members that would control the model server. Some choose the source of KV caches (vLLM's and SGLang's
 * disaggregation), or the adapters, templates and code that the server loads. Others choose a request id or slot, with
 * which one request could disturb another.
 */
export const rulingMembers: readonly string[] = [
  ...["kv_transfer_params", "ec_transfer_params", "bootstrap_host", "bootstrap_port", "bootstrap_room"],
  ...["data_parallel_rank", "routed_dp_rank", "disagg_prefill_dp_rank"],
  ...["lora_path", "lora_request", "lora", "adapters", "adapter_id"],
  ...["chat_template", "chat_template_str", "template", "instruction_template", "instruction_template_str"],
  ...["mm_processor_kwargs", "vllm_xargs", "prompt_embeds", "input_embeds"],
  ...["logits_processors", "custom_logit_processor", "custom_params", "session_params", "return_hidden_states"],
  ...["id_slot", "slot_id", "rid", "request_id", "draft_model"],
];

/** The request member whose members become variables of the model's chat template. */
export const templateArguments = "chat_template_kwargs";
/** Template variables that would replace the template, or the messages that the gateway has checked and counted. */
export const rulingArguments: readonly string[] = [
  ...["chat_template", "tokenize", "tokenizer_kwargs", "messages", "conversation", "tools"],
];

export const memberNamePattern = /^[a-z_][a-z0-9_.-]{0,63}$/;
export const maxRefusedMembers = 64;
