/** As much of a Markdown tree as is needed here. */
export interface MarkdownNode {
  type: string
  value?: string
  children?: MarkdownNode[]
}

const WIDE = '[\\p{Script=Han}\\p{Script=Hiragana}\\p{Script=Katakana}\\u3000-\\u303f\\uff00-\\uffef]'
const BREAK = new RegExp(`(${WIDE})\\n(?=${WIDE})`, 'gu')

/**
 * A line break inside a paragraph is a blank in English and nothing in Chinese or Japanese:
 * without this a text that is written one sentence per line has holes after its full stops.
 */
export function joinIdeographs() {
  return (tree: MarkdownNode): void => {
    if (tree.type === 'text' && tree.value !== undefined) tree.value = tree.value.replace(BREAK, '$1')
    for (const child of tree.children ?? []) joinIdeographs()(child)
  }
}
