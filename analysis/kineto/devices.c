// SPDX-License-Identifier: Apache-2.0
// What traces do not say of devices: how fast their cores and their memory are.
#include "analysis/kineto/impl.h"

// From the makers' data sheets: the clock at which the device has its peak of 16-bit matrices, or,
// where traces do not say which cores it has, that peak; and the bandwidth of its memory.  Of
// several devices with one name, the slowest.
static const struct device_row {
    const char *name; // a word of the device's name
    int64_t least_memory_gb, mhz, gb_s;
    double tflops;
} kDevices[] = {
    {"B200", 0, 1856, 7700, 0},      {"GB200", 0, 1856, 7700, 0},
    {"H200", 0, 1830, 4800, 0},      {"GH200", 0, 1830, 4000, 0},
    {"H100 PCIe", 0, 1620, 2000, 0}, {"H100 NVL", 0, 1545, 3900, 0},
    {"H100", 0, 1830, 3350, 0},      {"H800", 0, 1830, 3350, 0},
    {"A100", 60, 1410, 1935, 0},     {"A100", 0, 1410, 1555, 0},
    {"A30", 0, 1440, 933, 0},        {"A40", 0, 1740, 696, 0},
    {"A10", 0, 1695, 600, 0},        {"RTX A6000", 0, 1800, 768, 0},
    {"L40S", 0, 2490, 864, 0},       {"L40", 0, 1245, 864, 0},
    {"L4", 0, 2040, 300, 0},         {"RTX 4090", 0, 2520, 1008, 0},
    {"RTX 3090", 0, 1695, 936, 0},   {"V100S", 0, 1597, 1134, 0},
    {"V100", 0, 1380, 900, 0},       {"T4", 0, 1590, 300, 0},
    {"MI355X", 0, 2400, 8000, 0},    {"MI350X", 0, 2200, 8000, 0},
    {"MI325X", 0, 2100, 6000, 0},    {"MI300X", 0, 2100, 5300, 0},
    {"MI300A", 0, 2100, 5300, 0},    {"MI250X", 0, 1700, 1638, 191.5},
    {"MI250", 0, 1700, 1638, 181},   {"MI210", 0, 1700, 1638, 181},
    {"MI100", 0, 1502, 1228, 184.6},
};

static bool is_word_char(char c) {
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

static bool has_word(xpl_str_t s, xpl_str_t word) {
    for (size_t at = xpl_str_find(s, word, 0); at != SIZE_MAX; at = xpl_str_find(s, word, at + 1)) {
        const size_t end = at + word.len;
        if ((!at || !is_word_char(s.ptr[at - 1])) && (end == s.len || !is_word_char(s.ptr[end])))
            return true;
    }
    return false;
}

bool xpl_kineto_device_rates(const struct device_properties *d, struct device_rates *ret) {
    // vLLM's traces have no names of AMD's devices.
    const bool is_mi300 = !d->name.len && d->major == 9 && d->minor == 4;
    const xpl_str_t name = is_mi300 ? XPL_STR("MI300X") : d->name;
    for (size_t i = 0; i < sizeof kDevices / sizeof *kDevices; i++) {
        const struct device_row *const r = &kDevices[i];
        if (!has_word(name, xpl_str_from(r->name)) || d->memory / 1000000000 < r->least_memory_gb)
            continue;
        *ret = (struct device_rates){r->mhz * 1000, r->gb_s * 1000000000, r->tflops};
        return true;
    }
    return false;
}
