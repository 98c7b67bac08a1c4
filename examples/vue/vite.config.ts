// Vue warns of a tag that it doesn't know, unless its compiler takes it for a custom element.
import vue from '@vitejs/plugin-vue'
import { defineConfig } from 'vite'

const isCustomElement = (tag: string) => tag === 'countersign-sign-in'
export default defineConfig({ plugins: [vue({ template: { compilerOptions: { isCustomElement } } })] })
