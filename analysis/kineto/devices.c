// SPDX-License-Identifier: Apache-2.0
// What traces do not say of devices: how fast their cores and their memory are.
#include "analysis/kineto/impl.h"

// From the makers' data sheets: the clock at which the device has its peak of 16-bit matrices, and
// the bandwidth of its memory.  Of several devices with one name, the slowest.
static const struct device_row {
    const char *name; // a word of the device's name
    int64_t least_memory_gb, mhz, gb_s;
} kDevices[] = {
    {"B200", 0, 1856, 7700},    {"GB200", 0, 1856, 7700},     {"H200", 0, 1830, 4800},
    {"GH200", 0, 1830, 4000},   {"H100 PCIe", 0, 1620, 2000}, {"H100 NVL", 0, 1545, 3900},
    {"H100", 0, 1830, 3350},    {"H800", 0, 1830, 3350},      {"A100", 60, 1410, 1935},
    {"A100", 0, 1410, 1555},    {"A30", 0, 1440, 933},        {"A40", 0, 1740, 696},
    {"A10", 0, 1695, 600},      {"RTX A6000", 0, 1800, 768},  {"L40S", 0, 2490, 864},
    {"L40", 0, 1245, 864},      {"L4", 0, 2040, 300},         {"RTX 4090", 0, 2520, 1008},
    {"RTX 3090", 0, 1695, 936}, {"V100S", 0, 1597, 1134},     {"V100", 0, 1380, 900},
    {"T4", 0, 1590, 300},       {"MI355X", 0, 2400, 8000},    {"MI350X", 0, 2200, 8000},
    {"MI325X", 0, 2100, 6000},  {"MI300X", 0, 2100, 5300},    {"MI300A", 0, 2100, 5300},
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

bool xpl_kineto_device_rates(const struct device_properties *d, int64_t *ret_khz,
                             int64_t *ret_bytes_s) {
    // vLLM's traces have no names of AMD's devices.
    const bool is_mi300 = !d->name.len && d->major == 9 && d->minor == 4;
    const xpl_str_t name = is_mi300 ? XPL_STR("MI300X") : d->name;
    for (size_t i = 0; i < sizeof kDevices / sizeof *kDevices; i++) {
        const struct device_row *const r = &kDevices[i];
        if (!has_word(name, xpl_str_from(r->name)) || d->memory / 1000000000 < r->least_memory_gb)
            continue;
        *ret_khz = r->mhz * 1000;
        *ret_bytes_s = r->gb_s * 1000000000;
        return true;
    }
    return false;
}
