/** The inputs that feed the fields of the service's words, where the two have different names. */
const INPUTS_OF: Readonly<Record<string, string>> = {
  repo_url: '`repo-url`',
  repo_ref: '`repo-ref` or `tag`',
  graph_config_path: '`config-path`',
  langgraph_config_path: '`config-path`',
  image_uri: '`image-uri`',
  build_on_push: '`build-on-push`',
  resource_spec: '`source-config`',
}

/** Which inputs of the workflow the fields are that a text names, as a sentence; undefined when it names none. */
export function inputsNamedIn(text: string): string | undefined {
  const named = Object.entries(INPUTS_OF).filter(([field]) => new RegExp(`\\b${field}\\b`).test(text))
  const clauses = named.map(([field, inputs]) => `\`${field}\` is ${inputs}`)
  return clauses.length === 0 ? undefined : `In the workflow ${clauses.join(', and ')}.`
}
