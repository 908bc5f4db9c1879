/** What a deployment of the double is made from that a step of a scene updates without any change of its source. */
export const LIVE = {
  sourceConfig: { repo_url: 'https://github.com/acme/agents', build_on_push: false },
  config: { repo_ref: 'main' },
}
