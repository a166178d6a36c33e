// Members of requests that rule a model server, rather than describe the answer: refused unless an operator allows them.

/**
 * Members of request bodies that rule a model server: where they fetch the memory of prompts from (vLLM's and SGLang's disaggregation),
 * which adapters, templates and code they load, and by which name or slot others may be disturbed.
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

/** The member whose own members become variables of the model's template. */
export const templateArguments = "chat_template_kwargs";
/** Variables of a template by which a request replaces the template, or the messages that were checked and counted. */
export const rulingArguments: readonly string[] = [
  ...["chat_template", "tokenize", "tokenizer_kwargs", "messages", "conversation", "tools"],
];

export const memberNamePattern = /^[a-z_][a-z0-9_.-]{0,63}$/;
export const maxRefusedMembers = 64;
